// The smallest program of an outside project: it includes the library, links it and runs a line of it.
#include <cinta/core/random.h>

int main() { return 0; }
