# Compiler settings shared by every target: the interface target cinta_flags.
include(GNUInstallDirs)

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

# -O3 for the loops. The two math flags let them vectorise and leave NaN and infinity alone, unlike -ffast-math.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG -fno-math-errno -fno-trapping-math")

set(CINTA_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")

add_library(cinta_flags INTERFACE)
target_compile_features(cinta_flags INTERFACE cxx_std_20)
target_compile_options(cinta_flags INTERFACE -Wall -Wextra)
# Nobody puts functions of their own in the place of the library's: it calls them directly, and may inline them.
target_compile_options(cinta_flags INTERFACE -fno-semantic-interposition)
target_link_options(cinta_flags INTERFACE -Wl,-Bsymbolic-functions)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(cinta_flags INTERFACE -Wno-restrict)  # GCC bug 105651: false for every "text" + std::string
endif()
target_include_directories(cinta_flags INTERFACE ${PROJECT_SOURCE_DIR}/include)
if(CINTA_SANITIZE)
  target_compile_options(cinta_flags INTERFACE -fsanitize=${CINTA_SANITIZE} -fno-sanitize-recover=all
                                               -fno-omit-frame-pointer)
  target_link_options(cinta_flags INTERFACE -fsanitize=${CINTA_SANITIZE})
endif()

find_program(CINTA_CCACHE ccache)
if(CINTA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CINTA_CCACHE})
endif()
