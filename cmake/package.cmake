# What is installed: the libraries, the header and the CMake package, all inside the Python package.
#
# In the source tree the same files stand under torch_xla/, so that both work alike.
include(CMakePackageConfigHelpers)

get_filename_component(package_dir ${TORCH_XLA_LIBRARY_DIR} DIRECTORY)
set(config_dir share/cmake/torch_xla)
configure_file(${CMAKE_SOURCE_DIR}/cmake/torch_xla-config.cmake
               ${package_dir}/${config_dir}/torch_xla-config.cmake COPYONLY)
write_basic_package_version_file(${package_dir}/${config_dir}/torch_xla-config-version.cmake
                                 COMPATIBILITY SameMajorVersion)
configure_file(${CMAKE_SOURCE_DIR}/src/aten/torch_xla.h ${package_dir}/include/torch_xla/torch_xla.h COPYONLY)

set(component COMPONENT torch_xla)
install(DIRECTORY ${package_dir}/share ${package_dir}/include DESTINATION torch_xla ${component})
if(TARGET torch_xla)
  get_target_property(glue_dir torch_xla LIBRARY_OUTPUT_DIRECTORY)
  get_filename_component(glue ${glue_dir} NAME)
  install(TARGETS torch_xla _XLAC LIBRARY DESTINATION torch_xla/lib/${glue} ${component})
endif()
if(TARGET pjrt_plugin_cpu)
  install(TARGETS pjrt_plugin_cpu LIBRARY DESTINATION torch_xla/lib ${component})
  # The engine looks for oneDNN beside itself.
  get_filename_component(dnnl ${DNNL_LIBRARY} REALPATH)
  install(FILES ${dnnl} DESTINATION torch_xla/lib RENAME libdnnl.so.3 ${component})
endif()
if(TARGET pjrt_remote)
  # With the libraries of gRPC, beside it. The C and C++ runtime libraries are the system's.
  install(TARGETS pjrt_remote RUNTIME_DEPENDENCY_SET remote_dependencies
          LIBRARY DESTINATION torch_xla/lib ${component})
  install(RUNTIME_DEPENDENCY_SET remote_dependencies
          PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|stdc\\+\\+|gcc_s)\\.so"
          LIBRARY DESTINATION torch_xla/lib/grpc ${component})
endif()
