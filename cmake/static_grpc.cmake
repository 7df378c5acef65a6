# static_grpc: gRPC and all that it needs, to be held by a shared library. gRPC's and c-ares's archives are Debian's.
# Those of Abseil, RE2 and protobuf are made for programs alone (their thread-local variables have fixed places), so these
# three are compiled once more, from the sources of Debian's packages. Nothing of this is done unless it is linked.
include(ExternalProject)
set(folder ${CMAKE_BINARY_DIR}/static_grpc)
set(sources)
foreach(name absl re2 protobuf)
  ExternalProject_Add(${name}_source EXCLUDE_FROM_ALL ON PREFIX ${folder}/${name} SOURCE_DIR ${folder}/${name}/source
    DOWNLOAD_COMMAND ${CMAKE_SOURCE_DIR}/scripts/debian_source lib${name}-dev ${folder}/${name}/source
    CONFIGURE_COMMAND "" BUILD_COMMAND "" INSTALL_COMMAND "")
  list(APPEND sources ${name}_source)
endforeach()
set(archive ${folder}/build/libgrpc_dependencies.a)
ExternalProject_Add(grpc_dependencies EXCLUDE_FROM_ALL ON DEPENDS ${sources}
  PREFIX ${folder} SOURCE_DIR ${CMAKE_SOURCE_DIR}/cmake/grpc_dependencies BINARY_DIR ${folder}/build
  CMAKE_ARGS -DCMAKE_BUILD_TYPE=Release -DABSEIL_SOURCE=${folder}/absl/source -DRE2_SOURCE=${folder}/re2/source
             -DPROTOBUF_SOURCE=${folder}/protobuf/source
  CMAKE_CACHE_ARGS "-DCMAKE_CXX_COMPILER_LAUNCHER:STRING=${CMAKE_CXX_COMPILER_LAUNCHER}"
  INSTALL_COMMAND "" BUILD_BYPRODUCTS ${archive})

set(libraries)
# RE2's only for its tables, which the source package makes with other packages' help.
foreach(name grpc++ grpc gpr upb address_sorting cares re2 ssl crypto)
  find_library(STATIC_${name} lib${name}.a)
  list(APPEND libraries ${STATIC_${name}})
endforeach()
list(INSERT libraries 6 ${archive})
list(JOIN libraries "," libraries)
add_library(static_grpc INTERFACE)
add_dependencies(static_grpc grpc_dependencies)
target_link_libraries(static_grpc INTERFACE $<LINK_GROUP:RESCAN,${libraries}> z pthread)
