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
add_custom_target(wheel_libraries)  # what is installed
install(DIRECTORY ${package_dir}/share ${package_dir}/include DESTINATION torch_xla ${component})
if(TARGET torch_xla)
  get_target_property(glue_dir torch_xla LIBRARY_OUTPUT_DIRECTORY)
  get_filename_component(glue ${glue_dir} NAME)
  install(TARGETS torch_xla _XLAC LIBRARY DESTINATION torch_xla/lib/${glue} ${component})
  add_dependencies(wheel_libraries torch_xla _XLAC)
endif()
if(TARGET pjrt_plugin_cpu)
  install(TARGETS pjrt_plugin_cpu LIBRARY DESTINATION torch_xla/lib ${component})
  add_dependencies(wheel_libraries pjrt_plugin_cpu)
  # The engine looks for oneDNN beside itself.
  get_filename_component(dnnl ${DNNL_LIBRARY} REALPATH)
  install(FILES ${dnnl} DESTINATION torch_xla/lib RENAME libdnnl.so.3 ${component})
  install(CODE "
    if(CMAKE_INSTALL_DO_STRIP)
      execute_process(COMMAND ${CMAKE_STRIP} \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/torch_xla/lib/libdnnl.so.3
                      COMMAND_ERROR_IS_FATAL ANY)
    endif()" ${component})
endif()
if(TARGET pjrt_remote_static)
  install(TARGETS pjrt_remote_static LIBRARY DESTINATION torch_xla/lib ${component})
  add_dependencies(wheel_libraries pjrt_remote_static)
endif()
