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
  install(TARGETS pjrt_remote LIBRARY DESTINATION torch_xla/lib ${component})
  # The libraries of gRPC, beside it, each under the one name by which it is looked for: wheels hold no links. The C and
  # C++ runtime libraries are the system's.
  install(CODE "set(remote_library \"$<TARGET_FILE:pjrt_remote>\")" ${component})
  install(CODE [[
    file(GET_RUNTIME_DEPENDENCIES MODULES ${remote_library} RESOLVED_DEPENDENCIES_VAR dependencies
         PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|stdc\\+\\+|gcc_s)\\.so")
    set(folder $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/torch_xla/lib/grpc)
    file(MAKE_DIRECTORY ${folder})
    foreach(dependency ${dependencies})
      get_filename_component(name ${dependency} NAME)
      file(REAL_PATH ${dependency} file)
      file(COPY_FILE ${file} ${folder}/${name})
    endforeach()
  ]] ${component})
endif()
