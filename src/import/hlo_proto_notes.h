// The fields of HLO protos that hlo::Module keeps as annotations: see hlo_proto_fields.h. For an
// instruction: sharding, frontend_attributes, parameter_replication, result_accuracy, metadata and
// backend_config; for a module: its source tables.
#pragma once

#include <algorithm>

#include "hlo/attr_reader.h"
#include "hlo/module.h"
#include "import/hlo_proto_fields.h"

namespace heddle::import {

// Whether the text may be written in HLO text unquoted, in braces.
bool is_json(std::string_view text);

// FrontendAttributes as {key="value",key={…}}, by key.
template <typename Io>
void map_fields(Io& io, int field, TextParts& map) {
  io.message(field, !map.empty(), [&](Io& m) {
    m.each(1, map.size(), [&](Io& entry, size_t i) {
      entry.bytes(1, place(map, i).first);
      entry.bytes(2, map[i].second);
    });
  });
  if constexpr (Io::kReads) std::sort(map.begin(), map.end());
}
TextParts read_map(std::string_view text);  // values without their quotes
std::string map_text(const TextParts& map);

struct MetadataField {
  std::string_view key;
  int field;
  bool is_text;
};
// In printing order.
inline constexpr MetadataField kMetadata[] = {{"op_type", 1, true},
                                              {"op_name", 2, true},
                                              {"source_file", 3, true},
                                              {"source_line", 4, false},
                                              {"source_end_line", 17, false},
                                              {"source_column", 18, false},
                                              {"source_end_column", 19, false},
                                              {"stack_frame_id", 15, false},
                                              {"deduplicated_name", 12, true},
                                              {"scheduling_name", 16, true}};

template <typename Io>
void metadata_fields(Io& io, std::string& text) {
  TextParts words;
  if (!text.empty()) words = split_words(text);
  std::string out;
  for (const auto& [key, field, is_text] : kMetadata) {
    const auto found = std::find_if(words.begin(), words.end(),
                                    [key = key](const auto& word) { return word.first == key; });
    std::string value;
    int64_t number = 0;
    if (found != words.end()) {
      (is_text ? value = unquoted(found->second) : value).shrink_to_fit();
      if (!is_text) number = number_in(found->second);
      words.erase(found);
    }
    if (is_text) {
      io.bytes(field, value);
    } else {
      io.integer(field, number);
    }
    if (Io::kReads && (number != 0 || !value.empty()))
      out += fmt::format("{}{}={}", out.empty() ? "" : " ", key,
                         is_text ? hlo::quote(value) : std::to_string(number));
  }
  if constexpr (Io::kReads) {
    text = out.empty() ? "" : "{" + out + "}";
  } else {
    for (const auto& [key, value] : words) io.lose(fmt::format("{} in metadata", key));
  }
}

// All annotations of an instruction, metadata with its op_name; facts are written as frontend
// attributes.
template <typename Io>
void annotation_fields(Io& io, hlo::Annotations& list, TextParts& facts) {
  const auto take = [&](std::string_view key) -> std::string {
    for (auto& [known, value] : list)
      if (known == key) return value;
    return {};
  };
  const auto put = [&](std::string_view key, std::string value) {
    if (Io::kReads && !value.empty()) list.emplace_back(key, std::move(value));
  };
  std::string text = take("sharding");
  Sharding sharding;
  if (!text.empty()) sharding = read_sharding(text);
  if (io.message(40, !text.empty(), [&](Io& m) { sharding_fields(m, sharding); }))
    put("sharding", sharding_text(sharding));

  TextParts map = read_map(take("frontend_attributes"));
  map.insert(map.end(), facts.begin(), facts.end());
  map_fields(io, 68, map);
  if constexpr (Io::kReads) {
    for (const auto& item : map)
      if (hlo::is_fact_key(item.first)) facts.push_back(item);
    std::erase_if(map, [](const auto& item) { return hlo::is_fact_key(item.first); });
    if (!map.empty()) put("frontend_attributes", map_text(map));
  }

  text = take("parameter_replication");
  Ints replicated;
  if (!text.empty())
    for (size_t at = 0; (at = text.find_first_of("tf", at)) != std::string::npos; at += 4)
      replicated.push_back(text[at] == 't');
  if (io.message(61, !text.empty(), [&](Io& m) { m.ints(1, replicated); })) {
    std::string words;
    for (const int64_t each : replicated)
      words += fmt::format("{}{}", words.empty() ? "" : ",", each != 0);
    if (!words.empty()) put("parameter_replication", "{" + words + "}");
  }

  text = take("result_accuracy");
  io.message(91, !text.empty(), [&](Io& m) { accuracy_fields(m, text); });
  put("result_accuracy", text);

  text = take("metadata");
  io.message(7, !text.empty(), [&](Io& m) { metadata_fields(m, text); });
  put("metadata", text);

  text = unquoted(take("backend_config"));
  io.bytes(43, text);
  if (!text.empty())
    put("backend_config", is_json(text) ? hlo::fold_raw(text, true) : hlo::quote(text));

  if constexpr (!Io::kReads)
    for (const auto& [key, value] : list)
      if (key == "statistics" || key == "origin" || key == "original_value") io.lose(key);
}

// The rows of a table without their numbers, texts without quotes; and the inverse.
std::vector<std::string> table_rows(const hlo::Annotations& header, std::string_view table);
std::string table_text(const std::vector<std::string>& rows, bool quoted);

// The header's tables FileNames, FunctionNames, FileLocations and StackFrames.
template <typename Io>
void table_fields(Io& io, hlo::Annotations& header) {
  struct Table {
    std::string_view name;
    int field;
    std::vector<std::pair<std::string_view, int>> columns;  // none: rows of text
  };
  static const std::vector<Table> kTables = {
      {"FileNames", 1, {}},
      {"FunctionNames", 2, {}},
      {"FileLocations",
       3,
       {{"file_name_id", 1},
        {"function_name_id", 2},
        {"line", 3},
        {"end_line", 5},
        {"column", 4},
        {"end_column", 6}}},
      {"StackFrames", 4, {{"file_location_id", 1}, {"parent_frame_id", 2}}}};
  bool any = false;
  for (const auto& [key, value] : header) any = any || hlo::is_source_table(key);
  io.message(17, any, [&](Io& index) {
    for (const Table& table : kTables) {
      std::vector<std::string> rows;
      if constexpr (!Io::kReads) rows = table_rows(header, table.name);
      if (table.columns.empty()) {
        index.strings(table.field, rows);
      } else {
        index.each(table.field, rows.size(), [&](Io& m, size_t i) {
          std::string& row = place(rows, i);
          TextParts words;
          if (!row.empty()) words = split_words(row);
          std::string out;
          for (const auto& [key, field] : table.columns) {
            int64_t number = 0;
            for (const auto& [known, value] : words)
              if (known == key) number = number_in(value);
            // Text is offset by 1: it has 1 for a frame without parent, 2 if the parent is frame 1.
            const int64_t more = key == "parent_frame_id" && (Io::kReads || number > 0) ? 1 : 0;
            if (!Io::kReads) number -= more;
            m.integer(field, number);
            if (Io::kReads) number += more;
            if (number != 0) out += fmt::format("{}{}={}", out.empty() ? "" : " ", key, number);
          }
          row = "{" + out + "}";
        });
      }
      if constexpr (Io::kReads)
        if (!rows.empty()) header.emplace_back(table.name, table_text(rows, table.columns.empty()));
    }
  });
}

}  // namespace heddle::import
