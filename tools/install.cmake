# What is installed, and the Debian packages that `cpack` makes of it (docs/cpp.md): the components
# command, runtime and development are heddle, libheddle0 and libheddle-dev. Places under the prefix
# are fixed: the library looks for the code generator in ../lib/heddle.
include(CMakePackageConfigHelpers)
include(${PROJECT_SOURCE_DIR}/cmake/spdx.cmake)

# ---- what the command tells of itself ----
set(pages ${CMAKE_CURRENT_BINARY_DIR}/pages)
file(MAKE_DIRECTORY ${pages})
set(made)
foreach(pair man:heddle.1 bash:heddle zsh:_heddle fish:heddle.fish)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 kind)
  list(GET pair 1 name)
  add_custom_command(OUTPUT ${pages}/${name} COMMAND heddle completion ${kind} > ${pages}/${name}
                     DEPENDS heddle VERBATIM)
  list(APPEND made ${pages}/${name})
endforeach()
add_custom_target(heddle_pages ALL DEPENDS ${made})
install(FILES ${pages}/heddle.1 DESTINATION share/man/man1 COMPONENT command)
install(FILES ${pages}/heddle DESTINATION share/bash-completion/completions COMPONENT command)
install(FILES ${pages}/_heddle DESTINATION share/zsh/vendor-completions COMPONENT command)
install(FILES ${pages}/heddle.fish DESTINATION share/fish/vendor_completions.d COMPONENT command)

# ---- command, library, development files ----
install(TARGETS heddle RUNTIME DESTINATION bin COMPONENT command)
install(TARGETS heddle_shared LIBRARY DESTINATION lib COMPONENT runtime NAMELINK_COMPONENT development)
install(TARGETS heddle_static ARCHIVE DESTINATION lib COMPONENT development)
if(TARGET heddle-llvm)
  install(TARGETS heddle-llvm LIBRARY DESTINATION lib/heddle COMPONENT runtime)
endif()
install(FILES ${HEDDLE_HEADERS} DESTINATION include/heddle COMPONENT development)
install(FILES ${HEDDLE_DEVICE_HEADERS} DESTINATION include/heddle/runtime COMPONENT development)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/heddleConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES heddleConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/heddleConfigVersion.cmake
        DESTINATION lib/cmake/heddle COMPONENT development)
foreach(name heddle heddle-static)
  configure_file(${name}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION lib/pkgconfig COMPONENT development)
endforeach()

heddle_install_notices(share/doc/libheddle0/licences runtime)
heddle_write_spdx(${CMAKE_CURRENT_BINARY_DIR}/heddle.spdx.json)
foreach(pair command:heddle runtime:libheddle0 development:libheddle-dev)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 component)
  list(GET pair 1 package)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/${package} RENAME copyright
          COMPONENT ${component})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heddle.spdx.json DESTINATION share/doc/${package}
          COMPONENT ${component})
endforeach()

# All that is installed (script/quickstart).
add_custom_target(heddle_installed DEPENDS heddle heddle_shared heddle_static heddle_pages)

# ---- packages ----
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME heddle)
set(CPACK_PACKAGE_VENDOR heddle)
set(CPACK_PACKAGE_CONTACT "heddle developers <heddle@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler and runtime for deep-learning models")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL command runtime development)  # not Python's
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
if(HEDDLE_STATIC_DEPENDENCIES)
  set(CPACK_DEBIAN_COMPRESSION_TYPE xz)  # half a minute for libheddle.a
endif()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})  # the command's libheddle
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(same "(= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME heddle)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "libheddle0 ${same}")  # its code generator
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "Compiles deep-learning models (ONNX, HLO, StableHLO) for this machine
and runs, measures, checks and explains them.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libheddle0)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "The library that programs link, and the code generator that it opens.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libheddle-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libheddle0 ${same}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libfmt-dev, libsqlite3-dev")  # static links
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers for C and C++, the static library, and files for CMake and pkg-config.")
include(CPack)
