# HEDDLE_STATIC_DEPENDENCIES: what the wheel and the Debian packages are built with. LLVM, fmt, SQLite
# and libzip become parts of heddle's own binaries, which then run where none of them is installed.
# Compile flags stay the same, so that ccache has the objects of a build without it.
#
# Targets for the rest of the build, whichever way: heddle::fmt, heddle::zip, heddle::sqlite,
# heddle::zlib.
option(HEDDLE_STATIC_DEPENDENCIES "link LLVM, fmt, SQLite and libzip statically" OFF)

# heddle_find_archive(VAR NAME PACKAGE): the path of a static library, or an error that says where it is.
function(heddle_find_archive variable name package)
  find_library(${variable} NAMES ${name} DOC "HEDDLE_STATIC_DEPENDENCIES")
  mark_as_advanced(${variable})
  if(NOT ${variable})
    message(FATAL_ERROR "HEDDLE_STATIC_DEPENDENCIES: ${name} was not found: install ${package}, or pass "
                        "-DHEDDLE_STATIC_DEPENDENCIES=OFF")
  endif()
endfunction()

# heddle_install_notices(DESTINATION COMPONENT): the licences of what the binaries hold.
function(heddle_install_notices destination component)
  set(packages nlohmann-json3-dev libcli11-dev libexpected-dev libprotozero-dev libxxhash-dev libjemalloc-dev)
  if(HEDDLE_STATIC_DEPENDENCIES)
    list(APPEND packages llvm-19-dev libfmt-dev libsqlite3-dev libzip-dev zlib1g-dev libzstd-dev)
  endif()
  foreach(package ${packages})
    if(EXISTS /usr/share/doc/${package}/copyright)
      install(FILES /usr/share/doc/${package}/copyright DESTINATION ${destination} RENAME ${package}.txt
              COMPONENT ${component})
    endif()
  endforeach()
  install(FILES ${PROJECT_SOURCE_DIR}/third_party/pocketfft/LICENSE DESTINATION ${destination} RENAME pocketfft.txt
          COMPONENT ${component})
endfunction()

if(NOT HEDDLE_STATIC_DEPENDENCIES)
  add_library(heddle::fmt ALIAS fmt::fmt)
  add_library(heddle::zip ALIAS PkgConfig::zip)
  add_library(heddle::sqlite ALIAS SQLite::SQLite3)
  add_library(heddle::zlib ALIAS ZLIB::ZLIB)
  return()
endif()

# Debian has no libfmt.a: its code comes from its headers, in one file.
add_library(heddle_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cc)
add_library(heddle::fmt ALIAS heddle_fmt)
get_target_property(definitions fmt::fmt INTERFACE_COMPILE_DEFINITIONS)
target_compile_definitions(heddle_fmt PUBLIC ${definitions})

heddle_find_archive(HEDDLE_Z libz.a zlib1g-dev)
heddle_find_archive(HEDDLE_ZSTD libzstd.a libzstd-dev)
heddle_find_archive(HEDDLE_SQLITE libsqlite3.a libsqlite3-dev)
add_library(heddle_zlib INTERFACE)
add_library(heddle::zlib ALIAS heddle_zlib)
target_link_libraries(heddle_zlib INTERFACE ${HEDDLE_Z})
add_library(heddle_sqlite INTERFACE)
add_library(heddle::sqlite ALIAS heddle_sqlite)
target_link_libraries(heddle_sqlite INTERFACE ${HEDDLE_SQLITE} m ${CMAKE_DL_LIBS})

# Nor has it a libzip.a: script/bootstrap package makes one of Debian's source. Without it all is the
# same on this machine (pip install .), but no package for others.
find_library(HEDDLE_ZIP NAMES libzip.a HINTS ${PROJECT_SOURCE_DIR}/build/static/lib
             DOC "HEDDLE_STATIC_DEPENDENCIES")
mark_as_advanced(HEDDLE_ZIP)
if(HEDDLE_ZIP)
  add_library(heddle_zip INTERFACE)
  add_library(heddle::zip ALIAS heddle_zip)
  target_link_libraries(heddle_zip INTERFACE ${HEDDLE_ZIP} ${HEDDLE_Z})
else()
  message(WARNING "HEDDLE_STATIC_DEPENDENCIES: there is no libzip.a, so that libheddle.so needs libzip.so: "
                  "script/bootstrap package makes one")
  add_library(heddle::zip ALIAS PkgConfig::zip)
endif()

# What is not used is left out. Functions of LLVM that compile to the same code become one, as Microsoft's
# linker does in every release of LLVM: none of them is told from others by its address.
set(HEDDLE_SMALLER -Wl,--gc-sections)
set(HEDDLE_SMALLER_LLVM ${HEDDLE_SMALLER})
include(CheckCXXSourceCompiles)
get_directory_property(options LINK_OPTIONS)  # mold's, where it is there
set(CMAKE_REQUIRED_LINK_OPTIONS ${options} -Wl,--icf=all)
check_cxx_source_compiles("int main() {}" HEDDLE_LINKER_FOLDS)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
if(HEDDLE_LINKER_FOLDS)
  list(APPEND HEDDLE_SMALLER_LLVM -Wl,--icf=all)
endif()

# heddle_static_llvm(VAR): the archives behind LLVM's code generator for x86-64, and what they need.
function(heddle_static_llvm variable)
  set(open LLVMX86CodeGen LLVMX86Desc LLVMX86Info LLVMScalarOpts LLVMObject LLVMCore)
  set(names)
  while(open)
    list(POP_FRONT open name)
    if(NOT name IN_LIST names)
      list(APPEND names ${name})
      get_target_property(behind ${name} INTERFACE_LINK_LIBRARIES)
      list(FILTER behind INCLUDE REGEX "^LLVM")
      list(APPEND open ${behind})
    endif()
  endwhile()
  list(TRANSFORM names REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
  set(${variable} -Wl,--start-group ${archives} -Wl,--end-group ${HEDDLE_Z} ${HEDDLE_ZSTD} m
                  ${CMAKE_DL_LIBS} PARENT_SCOPE)
endfunction()
