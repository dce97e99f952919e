# The tests: one Catch2 program, one CTest entry per file of tests/, and the installed package used from outside.
find_package(Catch2 2.13 REQUIRED)
file(GLOB test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*.cpp)
list(REMOVE_ITEM test_sources ${PROJECT_SOURCE_DIR}/tests/main.cpp)

add_library(cinta_tests_main OBJECT tests/main.cpp)
target_link_libraries(cinta_tests_main PRIVATE cinta_flags Catch2::Catch2)

add_executable(cinta_tests ${test_sources} $<TARGET_OBJECTS:cinta_tests_main>)
target_link_libraries(cinta_tests PRIVATE cinta cinta_private Catch2::Catch2)
target_include_directories(cinta_tests PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(cinta_tests PRIVATE CINTA_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                               CINTA_BINARY_DIR="${PROJECT_BINARY_DIR}")
set(tests_optimization -O1)  # for a short build
if(CINTA_SANITIZE)
  set(tests_optimization -O0)  # sanitizers add much code
endif()
target_compile_options(cinta_tests PRIVATE ${tests_optimization})
target_compile_options(cinta_tests_main PRIVATE ${tests_optimization})
add_dependencies(cinta_tests cinta_command)  # tests/command.cpp runs it
# Host functions of CUDA's headers, where a toolkit lies around: nothing of it is linked.
find_path(CINTA_CUDA_INCLUDE cuda_fp8.h HINTS ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES include)
mark_as_advanced(CINTA_CUDA_INCLUDE)
if(CINTA_CUDA_INCLUDE)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/cuda_formats.cpp PROPERTIES
                              COMPILE_OPTIONS "-isystem;${CINTA_CUDA_INCLUDE}")
endif()
# This one has a cell of the CPU backend, whose loops are compiled with the flag.
set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/recipe_op.cpp PROPERTIES COMPILE_OPTIONS -fopenmp-simd)

# Backends from outside, loaded at run time: each file of tests/plugins/ becomes lib/<name>.so in the build tree.
file(GLOB plugin_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/plugins/*.cpp)
foreach(source IN LISTS plugin_sources)
  cmake_path(GET source STEM name)
  add_library(plugin_${name} MODULE ${source})
  set_target_properties(plugin_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name})
  target_link_libraries(plugin_${name} PRIVATE cinta cinta_flags)
  add_dependencies(cinta_tests plugin_${name})
endforeach()

# Fuzz targets need clang to run; compiling them here keeps them from rotting.
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp)
if(fuzz_sources)
  add_library(cinta_fuzz OBJECT ${fuzz_sources})
  target_link_libraries(cinta_fuzz PRIVATE cinta_flags)
endif()

set(seconds 600)
if(CINTA_SANITIZE)
  set(seconds 3600)
endif()
foreach(source IN LISTS test_sources)
  cmake_path(GET source STEM name)
  add_test(NAME ${name} COMMAND cinta_tests --filenames-as-tags "[#${name}]~[every_float]" WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES FAIL_REGULAR_EXPRESSION "No test cases matched" TIMEOUT ${seconds})
endforeach()

# The contracts of the kernels once more, with what an older processor gets.
foreach(isa IN ITEMS baseline avx2 avx512 avx512_bf16)
  add_test(NAME kernel_contract_on_${isa} COMMAND cinta_tests "[kernel_contract],[cpu_math]" WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(kernel_contract_on_${isa} PROPERTIES ENVIRONMENT CINTA_ISA=${isa} TIMEOUT ${seconds})
endforeach()

# The products where we have kernels of our own which the processor need not take by itself: those of AVX2, and of pairs
# of bf16.
foreach(isa IN ITEMS avx2 avx512_bf16)
  add_test(NAME products_on_${isa} COMMAND cinta_tests "[matmul],[attention]" WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(products_on_${isa} PROPERTIES ENVIRONMENT CINTA_ISA=${isa} TIMEOUT ${seconds})
endforeach()

# A program built against the installed package would need the sanitizers as well, so only plain builds run this.
if(NOT CINTA_SANITIZE)
  add_test(NAME package COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DSOURCE=${PROJECT_SOURCE_DIR}/tests/package
                                -DCOMPILER=${CMAKE_CXX_COMPILER} -DGENERATOR=${CMAKE_GENERATOR} -P ${PROJECT_SOURCE_DIR}/tests/package/run.cmake)
endif()
