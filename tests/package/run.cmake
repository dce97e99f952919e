# Installs the build into a prefix of its own, then configures, builds and runs the consumer against that prefix alone.
set(prefix ${BUILD}/package/prefix)
set(consumer ${BUILD}/package/consumer)
file(REMOVE_RECURSE ${BUILD}/package)
foreach(command IN ITEMS
        "${CMAKE_COMMAND}|--install|${BUILD}|--prefix|${prefix}"
        "${CMAKE_COMMAND}|-G|${GENERATOR}|-S|${SOURCE}|-B|${consumer}|-DCMAKE_PREFIX_PATH=${prefix}|-DCMAKE_CXX_COMPILER=${COMPILER}"
        "${CMAKE_COMMAND}|--build|${consumer}"
        "${consumer}/consumer")
  string(REPLACE "|" ";" command "${command}")
  execute_process(COMMAND ${command} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
