# heddle_write_spdx(FILE): what the installed files are linked with, as an SPDX 2.3 document. Versions
# are those that this build found.

# Adds a package to `packages` of the caller.
function(heddle_spdx_package id name version license)
  if(NOT version)
    set(version NOASSERTION)
  endif()
  set(text "    {\"SPDXID\": \"SPDXRef-${id}\", \"name\": \"${name}\", \"versionInfo\": \"${version}\",
     \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false, \"copyrightText\": \"NOASSERTION\",
     \"licenseConcluded\": \"${license}\", \"licenseDeclared\": \"${license}\"}")
  set(packages "${packages},\n${text}" PARENT_SCOPE)
endfunction()

# heddle_spdx_links(ID KIND OTHER...): relations, added to `relations` of the caller.
function(heddle_spdx_links id kind)
  foreach(other ${ARGN})
    string(APPEND relations ",\n    {\"spdxElementId\": \"SPDXRef-${id}\", \"relationshipType\": \"${kind}\", \"relatedSpdxElement\": \"SPDXRef-${other}\"}")
  endforeach()
  set(relations "${relations}" PARENT_SCOPE)
endfunction()

function(heddle_write_spdx file)
  string(TIMESTAMP now UTC)
  execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE libc ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "glibc " "" libc "${libc}")
  pkg_check_modules(jemalloc QUIET jemalloc)
  pkg_check_modules(xxhash QUIET libxxhash)
  find_file(HEDDLE_PROTOZERO_VERSION protozero/version.hpp)
  mark_as_advanced(HEDDLE_PROTOZERO_VERSION)
  set(protozero "")
  if(HEDDLE_PROTOZERO_VERSION)
    file(STRINGS ${HEDDLE_PROTOZERO_VERSION} protozero REGEX "define PROTOZERO_VERSION_STRING")
    string(REGEX REPLACE ".*\"(.*)\".*" "\\1" protozero "${protozero}")
  endif()
  set(mine Apache-2.0)
  set(packages "")
  heddle_spdx_package(command heddle ${PROJECT_VERSION} ${mine})
  heddle_spdx_package(library libheddle.so ${PROJECT_VERSION} ${mine})
  heddle_spdx_package(archive libheddle.a ${PROJECT_VERSION} ${mine})
  heddle_spdx_package(fmt fmt "${fmt_VERSION}" MIT)
  heddle_spdx_package(libzip libzip "${zip_VERSION}" BSD-3-Clause)
  heddle_spdx_package(zlib zlib "${ZLIB_VERSION_STRING}" Zlib)
  heddle_spdx_package(sqlite SQLite "${SQLite3_VERSION}" blessing)
  heddle_spdx_package(json nlohmann-json "${nlohmann_json_VERSION}" MIT)
  heddle_spdx_package(expected tl-expected "${tl-expected_VERSION}" CC0-1.0)
  heddle_spdx_package(cli11 CLI11 "${CLI11_VERSION}" BSD-3-Clause)
  heddle_spdx_package(protozero protozero "${protozero}" BSD-2-Clause)
  heddle_spdx_package(xxhash xxHash "${xxhash_VERSION}" BSD-2-Clause)
  heddle_spdx_package(pocketfft pocketfft 2020 BSD-3-Clause)
  heddle_spdx_package(libstdcxx libstdc++ "${CMAKE_CXX_COMPILER_VERSION}" "GPL-3.0-or-later WITH GCC-exception-3.1")
  heddle_spdx_package(glibc glibc "${libc}" LGPL-2.1-or-later)
  set(headers json expected protozero xxhash pocketfft)
  set(static ${headers})
  set(shared libstdcxx glibc)
  if(HEDDLE_STATIC_DEPENDENCIES)
    pkg_check_modules(zstd QUIET libzstd)
    heddle_spdx_package(zstd zstd "${zstd_VERSION}" BSD-3-Clause)
    list(APPEND static fmt sqlite)
    set(of_llvm fmt llvm zlib zstd)
    set(llvm_kind STATIC_LINK)
  else()
    list(APPEND shared fmt sqlite)
    set(of_llvm fmt llvm)
    set(llvm_kind DYNAMIC_LINK)
  endif()
  set(relations "")
  heddle_spdx_links(DOCUMENT DESCRIBES library archive)
  heddle_spdx_links(archive STATIC_LINK ${headers})
  heddle_spdx_links(archive DYNAMIC_LINK fmt sqlite libstdcxx glibc)
  heddle_spdx_links(library DYNAMIC_LINK ${shared})
  if(HEDDLE_STATIC_DEPENDENCIES)  # the command's code is in the library
    heddle_spdx_links(library STATIC_LINK ${static} cli11 libzip zlib)
    heddle_spdx_links(command DYNAMIC_LINK library ${shared})
  else()
    heddle_spdx_links(library STATIC_LINK ${static})
    heddle_spdx_links(command STATIC_LINK ${static} cli11)
    heddle_spdx_links(command DYNAMIC_LINK libzip zlib ${shared})
  endif()
  if(HEDDLE_JEMALLOC)
    heddle_spdx_package(jemalloc jemalloc "${jemalloc_VERSION}" BSD-2-Clause)
    heddle_spdx_links(command STATIC_LINK jemalloc)
  endif()
  if(TARGET heddle-llvm)
    heddle_spdx_package(codegenerator libheddle-llvm.so ${PROJECT_VERSION} ${mine})
    get_target_property(llvm heddle-llvm HEDDLE_LLVM_VERSION)
    heddle_spdx_package(llvm LLVM "${llvm}" "Apache-2.0 WITH LLVM-exception")
    heddle_spdx_links(DOCUMENT DESCRIBES codegenerator)
    heddle_spdx_links(codegenerator STATIC_LINK expected xxhash)
    heddle_spdx_links(codegenerator ${llvm_kind} ${of_llvm})
    heddle_spdx_links(codegenerator DYNAMIC_LINK libstdcxx glibc)
  endif()
  string(REGEX REPLACE "^,\n" "" packages "${packages}")
  file(WRITE ${file} "{
  \"spdxVersion\": \"SPDX-2.3\", \"dataLicense\": \"CC0-1.0\", \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"heddle-${PROJECT_VERSION}\",
  \"documentNamespace\": \"urn:heddle:${PROJECT_VERSION}:${now}\",
  \"creationInfo\": {\"created\": \"${now}\", \"creators\": [\"Tool: heddle-cmake\"]},
  \"packages\": [
${packages}
  ],
  \"relationships\": [
    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-command\"}${relations}
  ]
}
")
endfunction()
