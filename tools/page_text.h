// What pages are made of: one file each, which loads nothing from elsewhere, from the files of
// page/ and data. Text of models is only put in by these.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::tools {

extern const char* const kReportHtml;  // the files of page/
extern const char* const kReportStyle;
extern const char* const kReportScript;
extern const char* const kQuantizeHtml;
extern const char* const kQuantizeStyle;
extern const char* const kQuantizeScript;

// As text of an element or an attribute.
std::string escaped(const std::string& text);
// JSON as the text of a script element. What is not UTF-8 is replaced.
std::string script_text(const nlohmann::ordered_json& data);
// The frame with every "{name}" that is one of these replaced, once: not in what was put in.
std::string filled(std::string_view frame,
                   const std::vector<std::pair<std::string_view, std::string>>& parts);

}  // namespace heddle::tools
