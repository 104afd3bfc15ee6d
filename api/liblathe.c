/* liblathe: the functions of lathe.h as symbols of a library, for programs that cannot use its inline functions. They do
 * what the inline ones do: call through the table of the executable they are given. */
#define LATHE_API __attribute__((visibility("default")))
#include "api/lathe.h"
