// Closes what isa_begin.h opened.
}  // namespace cinta::cpu_<name>

#if CINTA_ISA_LEVEL > 0
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

#undef CINTA_ISA_OPEN
#undef CINTA_ISA_NAMESPACE
#undef CINTA_ISA_JOIN
