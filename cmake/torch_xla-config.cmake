# find_package(torch_xla) gives the target torch_xla::torch_xla: the xla device for programs that use LibTorch.
#
# It finds Torch by itself, whose folder must be on CMAKE_PREFIX_PATH (python -c "import torch;
# print(torch.utils.cmake_prefix_path)"), and takes the newest library that is not newer than that Torch.
include(CMakeFindDependencyMacro)
find_dependency(Torch)

get_filename_component(torch_xla_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch_xla_torch_minor "${Torch_VERSION}")
set(torch_xla_minor "")
file(GLOB torch_xla_folders "${torch_xla_root}/lib/torch*")
foreach(folder ${torch_xla_folders})
  string(REGEX MATCH "[0-9]+\\.[0-9]+$" minor "${folder}")
  if(EXISTS "${folder}/libtorch_xla.so" AND minor VERSION_LESS_EQUAL torch_xla_torch_minor
     AND (NOT torch_xla_minor OR minor VERSION_GREATER torch_xla_minor))
    set(torch_xla_minor "${minor}")
  endif()
endforeach()
if(NOT torch_xla_minor)
  set(torch_xla_FOUND FALSE)
  set(torch_xla_NOT_FOUND_MESSAGE
      "torch_xla in ${torch_xla_root} was not built for Torch ${Torch_VERSION} or an older one")
  return()
endif()

if(NOT TARGET torch_xla::torch_xla)
  add_library(torch_xla::torch_xla SHARED IMPORTED)
  set_target_properties(torch_xla::torch_xla PROPERTIES
    IMPORTED_LOCATION "${torch_xla_root}/lib/torch${torch_xla_minor}/libtorch_xla.so"
    INTERFACE_INCLUDE_DIRECTORIES "${torch_xla_root}/include")
  # A program may use the device without naming any of the library's symbols; it must be loaded all the same.
  target_link_options(torch_xla::torch_xla INTERFACE "LINKER:--no-as-needed")
  target_link_libraries(torch_xla::torch_xla INTERFACE ${TORCH_LIBRARIES})
endif()
