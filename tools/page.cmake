# The pages' files as variables for page_files.cc.in. Modules of page/report are joined into one script, in
# the order in which they need one another: each becomes a function that returns what it exports, under the names
# by which the others import it.
set(page ${CMAKE_CURRENT_SOURCE_DIR}/page)
file(READ ${page}/report/report.html HEDDLE_REPORT_HTML)
file(READ ${page}/report/report.css HEDDLE_REPORT_CSS)
set(HEDDLE_REPORT_JS "'use strict';\n")
set(modules data format dom state code fold layout graph timeline memory roofline table fusions passes numbers
            details overview search main)
foreach(module ${modules})
  file(READ ${page}/report/${module}.js text)
  string(REGEX MATCHALL "\nexport (async )?(function|const) [A-Za-z]+" exports "\n${text}")
  string(REGEX REPLACE "\nexport (async )?(function|const) " "" exports "${exports}")
  string(REPLACE ";" ", " exports "${exports}")
  string(REGEX REPLACE "\nimport [^;]*;" "" text "\n${text}")
  string(REGEX REPLACE "\nexport " "\n" text "${text}")
  string(APPEND HEDDLE_REPORT_JS "const { ${exports} } = (() => {${text}return { ${exports} };\n})();\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page}/report/${module}.js)
endforeach()
file(READ ${page}/quantize.html HEDDLE_QUANTIZE_HTML)
file(READ ${page}/quantize.css HEDDLE_QUANTIZE_CSS)
file(READ ${page}/quantize.js HEDDLE_QUANTIZE_JS)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page}/report/report.html ${page}/report/report.css
             ${page}/quantize.html ${page}/quantize.css ${page}/quantize.js)
