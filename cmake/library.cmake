# The library: every source of the library floors, the CPU backend with its optional libraries, the SIMD variants.

# Sources of a folder and of the folders one level below; a folder that does not exist adds nothing.
function(cinta_sources result)
  set(patterns "")
  foreach(folder IN LISTS ARGN)
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/${folder}/*.cpp ${PROJECT_SOURCE_DIR}/${folder}/*/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# Objects stay unarchived: rows install themselves when the library is loaded, and an archive would drop them.
cinta_sources(library_sources core autograd backends/reference backends/meta ops optim distributed models data train)
file(GLOB backend_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backends/*.cpp)
add_library(cinta SHARED ${library_sources} ${backend_sources})
add_library(cinta::cinta ALIAS cinta)
target_compile_features(cinta PUBLIC cxx_std_20)
target_compile_options(cinta PRIVATE -ftls-model=initial-exec)  # the tape reads thread-local state at every op
target_include_directories(cinta PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(cinta PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
add_library(cinta_private INTERFACE)
target_link_libraries(cinta_private INTERFACE cinta_flags nlohmann_json::nlohmann_json fmt::fmt cinta_utf8proc ZLIB::ZLIB
                                              Threads::Threads ${CMAKE_DL_LIBS})
target_link_libraries(cinta PRIVATE cinta_private $<LINK_ONLY:cinta_accelerators>)

# The CPU backend. -fopenmp-simd makes `omp simd` count without OpenMP too.
function(cinta_add_objects name)
  if(ARGN)
    add_library(${name} OBJECT ${ARGN})
    target_link_libraries(${name} PRIVATE cinta_flags cinta_accelerators)
    target_compile_options(${name} PRIVATE -fopenmp-simd)
    target_sources(cinta PRIVATE $<TARGET_OBJECTS:${name}>)
  endif()
endfunction()

cinta_sources(cpu_sources backends/cpu)
file(GLOB simd_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backends/cpu/simd/*.cpp)
if(simd_sources)
  list(REMOVE_ITEM cpu_sources ${simd_sources})
endif()
cinta_add_objects(cinta_cpu ${cpu_sources})

# backends/cpu/simd/ is compiled once per instruction set. The sources choose the target themselves by a pragma, so
# that no inline function of a shared header is ever compiled for a machine that this one may not be.
set(CINTA_ISA_NAMES baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND CINTA_ISA_NAMES avx2 avx512)
endif()
set(level 0)
foreach(isa IN LISTS CINTA_ISA_NAMES)
  cinta_add_objects(cinta_simd_${isa} ${simd_sources})
  if(TARGET cinta_simd_${isa})
    target_compile_definitions(cinta_simd_${isa} PRIVATE CINTA_ISA_NAME=${isa} CINTA_ISA_LEVEL=${level})
  endif()
  math(EXPR level "${level} + 1")
endforeach()
