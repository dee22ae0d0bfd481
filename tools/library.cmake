# libheddle.so and libheddle.a: everything behind heddle.h. Other projects of the same build link
# heddle::heddle or heddle::heddle_static, as those do that find the installed package.
file(GLOB HEDDLE_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/api/heddle*.h ${PROJECT_SOURCE_DIR}/src/api/heddle*.hpp)
set(HEDDLE_DEVICE_HEADERS ${PROJECT_SOURCE_DIR}/src/runtime/hal.h
                          ${PROJECT_SOURCE_DIR}/src/runtime/hal_conformance.h)  # for devices of other trees

# <heddle/heddle.h> leads to the sources.
foreach(header ${HEDDLE_HEADERS})
  get_filename_component(name ${header} NAME)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/heddle/${name} CONTENT "#include \"@header@\"\n" @ONLY)
endforeach()
foreach(header ${HEDDLE_DEVICE_HEADERS})
  get_filename_component(name ${header} NAME)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/heddle/runtime/${name} CONTENT "#include \"@header@\"\n" @ONLY)
endforeach()

# Only the functions of heddle.h can be seen.
add_library(heddle_shared SHARED shared.c)
add_library(heddle::heddle ALIAS heddle_shared)
target_include_directories(heddle_shared INTERFACE ${PROJECT_BINARY_DIR}/include)
set_target_properties(heddle_shared PROPERTIES
  OUTPUT_NAME heddle SOVERSION 0 VERSION ${PROJECT_VERSION} LINKER_LANGUAGE CXX
  LINK_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/heddle.map;$<TARGET_FILE:heddle_api>")
target_link_libraries(heddle_shared PRIVATE -Wl,--whole-archive $<TARGET_FILE:heddle_api>
                                            -Wl,--no-whole-archive heddle_api)
target_link_options(heddle_shared PRIVATE
                    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/heddle.map -Wl,--no-undefined)

# Packages have one binary for the library and the command: three quarters of the command are the library.
if(HEDDLE_STATIC_DEPENDENCIES)
  target_sources(heddle_shared PRIVATE main.cc)
  target_link_libraries(heddle_shared PRIVATE heddle_tools)
  target_link_options(heddle_shared PRIVATE ${HEDDLE_SMALLER})
endif()

# The objects of all the libraries that heddle_api is made of, in one archive.
add_library(heddle_static STATIC shared.c)
add_library(heddle::heddle_static ALIAS heddle_static)
target_include_directories(heddle_static INTERFACE ${PROJECT_BINARY_DIR}/include)
set_target_properties(heddle_static PROPERTIES
  OUTPUT_NAME heddle ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} LINKER_LANGUAGE CXX)
get_target_property(parts heddle_api LINK_LIBRARIES)
list(FILTER parts INCLUDE REGEX "^heddle_")
list(REMOVE_DUPLICATES parts)
foreach(part heddle_api ${parts})
  get_target_property(kind ${part} TYPE)
  if(kind STREQUAL "STATIC_LIBRARY")
    target_sources(heddle_static PRIVATE $<TARGET_OBJECTS:${part}>)
  endif()
endforeach()
target_link_libraries(heddle_static PRIVATE fmt::fmt SQLite::SQLite3 Threads::Threads
                                            ${CMAKE_DL_LIBS})

if(TARGET heddle-llvm)  # opened at run time
  add_dependencies(heddle_shared heddle-llvm)
  add_dependencies(heddle_static heddle-llvm)
endif()
