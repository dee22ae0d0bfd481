# find_package(heddle): the C interface as heddle::heddle.
get_filename_component(heddle_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET heddle::heddle)
  add_library(heddle::heddle SHARED IMPORTED)
  set_target_properties(heddle::heddle PROPERTIES
    IMPORTED_LOCATION "${heddle_prefix}/lib/libheddle.so"
    INTERFACE_INCLUDE_DIRECTORIES "${heddle_prefix}/include")
endif()
