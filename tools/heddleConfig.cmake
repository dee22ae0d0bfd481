# find_package(heddle): the C and C++ interface as heddle::heddle, the shared library, and
# heddle::heddle_static, the archive. Static linking needs the files of Debian's libfmt-dev and
# libsqlite3-dev: find_package(heddle COMPONENTS static) checks that they are there.
get_filename_component(heddle_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET heddle::heddle)
  add_library(heddle::heddle SHARED IMPORTED)
  set_target_properties(heddle::heddle PROPERTIES
    IMPORTED_LOCATION "${heddle_prefix}/lib/libheddle.so"
    INTERFACE_INCLUDE_DIRECTORIES "${heddle_prefix}/include")
endif()
if(NOT TARGET heddle::heddle_static AND EXISTS "${heddle_prefix}/lib/libheddle.a")
  add_library(heddle::heddle_static STATIC IMPORTED)
  set_target_properties(heddle::heddle_static PROPERTIES
    IMPORTED_LOCATION "${heddle_prefix}/lib/libheddle.a"
    INTERFACE_INCLUDE_DIRECTORIES "${heddle_prefix}/include"
    INTERFACE_LINK_LIBRARIES "fmt;sqlite3;stdc++;m;pthread;dl")
endif()

foreach(heddle_component ${heddle_FIND_COMPONENTS})
  set(heddle_${heddle_component}_FOUND FALSE)
  if(heddle_component STREQUAL "shared")
    set(heddle_shared_FOUND TRUE)
  elseif(heddle_component STREQUAL "static")
    set(heddle_missing)
    foreach(heddle_library fmt sqlite3)
      find_library(heddle_LIBRARY_${heddle_library} NAMES ${heddle_library})
      mark_as_advanced(heddle_LIBRARY_${heddle_library})
      if(NOT heddle_LIBRARY_${heddle_library})
        string(APPEND heddle_missing " lib${heddle_library}-dev")
      endif()
    endforeach()
    if(TARGET heddle::heddle_static AND NOT heddle_missing)
      set(heddle_static_FOUND TRUE)
    else()
      set(heddle_NOT_FOUND_MESSAGE "component static needs libheddle.a${heddle_missing}")
    endif()
  else()
    set(heddle_NOT_FOUND_MESSAGE "no component ${heddle_component}; there are shared and static")
  endif()
  if(heddle_FIND_REQUIRED_${heddle_component} AND NOT heddle_${heddle_component}_FOUND)
    set(heddle_FOUND FALSE)
  endif()
endforeach()
