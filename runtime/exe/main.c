/* The program of artifact `exe`: ./m input_0.pb input_1.npy -o out/. */
#include "runtime/exe/exe.h"
#include "runtime/exec/query.h"

int main(int argc, char **argv)
{
	return lth_exe_main(argc, argv, lathe_query);
}
