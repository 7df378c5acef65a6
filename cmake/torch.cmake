# Finds torch by where it lies. torch's own CMake package is not asked: that of a build for CUDA, which is what the public
# index has, wants CUDA's compiler and libraries, of which nothing here has a use.
#
# Takes Torch_DIR, the folder of that package, or the Python whose torch is used. Defines TORCH_INSTALL_PREFIX, Torch_VERSION
# and the libraries torch_cpu and c10.
set(TORCH_XLA_PYTHON ${CMAKE_SOURCE_DIR}/.venv/bin/python CACHE FILEPATH "The Python whose torch is used")
if(Torch_DIR)
  get_filename_component(TORCH_INSTALL_PREFIX ${Torch_DIR}/../../.. ABSOLUTE)
else()
  execute_process(
    COMMAND ${TORCH_XLA_PYTHON} -c
            "from importlib.util import find_spec; print(find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE TORCH_INSTALL_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
include(${TORCH_INSTALL_PREFIX}/share/cmake/Torch/TorchConfigVersion.cmake)
set(Torch_VERSION ${PACKAGE_VERSION})
message(STATUS "torch ${Torch_VERSION}: ${TORCH_INSTALL_PREFIX}")

# What torch was built with, which decides of members of its classes: what its package says of its library, if anything.
file(READ ${TORCH_INSTALL_PREFIX}/share/cmake/Caffe2/Caffe2Targets.cmake targets)
set(definitions "")
if(targets MATCHES "set_target_properties\\(torch_cpu PROPERTIES[^)]*INTERFACE_COMPILE_DEFINITIONS \"([^\"]*)\"")
  set(definitions "${CMAKE_MATCH_1}")
else()
  message(WARNING "Caffe2Targets.cmake does not say what torch was built with: classes of its library may differ from ours")
endif()

foreach(library torch_cpu c10)
  add_library(${library} SHARED IMPORTED GLOBAL)
  set_target_properties(${library} PROPERTIES
    IMPORTED_LOCATION ${TORCH_INSTALL_PREFIX}/lib/lib${library}.so
    INTERFACE_COMPILE_DEFINITIONS "${definitions}"
    INTERFACE_INCLUDE_DIRECTORIES
    "${TORCH_INSTALL_PREFIX}/include;${TORCH_INSTALL_PREFIX}/include/torch/csrc/api/include")
endforeach()
