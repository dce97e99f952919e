// A shared library that is not a backend.
extern "C" int cinta_is_not_meant() { return 0; }
