// The fields of HloModuleProto other than its computations: see hlo_proto_fields.h. Information
// that only text can express (counts of replicas, states, symbols, …) is written as frontend
// attributes `heddle.<key>`.
#pragma once

#include <limits>

#include "hlo/state_arrays.h"
#include "import/hlo_proto_notes.h"

namespace heddle::import {

inline constexpr std::string_view kHeaderPrefix = "heddle.";

// Keys and values of the header that are written in this way; a value is empty if the module has
// none.
TextParts header_parts(const hlo::Module& module);
void read_header_part(std::string_view key, const std::string& text, hlo::Module& module);

template <typename Io>
void alias_fields(Io& io, std::vector<hlo::Alias>& aliases) {
  io.message(8, !aliases.empty(), [&](Io& table) {
    table.each(1, aliases.size(), [&](Io& m, size_t i) {
      hlo::Alias& alias = place(aliases, i);
      m.ints(1, alias.output_index);
      m.integer(2, alias.parameter);
      m.ints(3, alias.parameter_index);
      int64_t kind = alias.must ? 2 : 1;
      m.integer(4, kind);
      alias.must = kind == 2;
    });
  });
}

template <typename Io>
void header_fields(Io& io, hlo::Module& module) {
  alias_fields(io, module.input_output_alias);
  std::string donors_written, map_written;
  for (const auto& [key, value] : module.header) {
    if (key == "buffer_donor") donors_written = value;
    if (key == "frontend_attributes") map_written = value;
    if (!Io::kReads && (key == "origin_recovery_table" || key == "debug_attributes")) io.lose(key);
  }
  std::vector<Donor> donors;
  if (!donors_written.empty()) donors = read_donors(donors_written);
  io.message(18, !donors.empty(), [&](Io& table) {
    table.each(1, donors.size(), [&](Io& m, size_t i) {
      m.integer(1, place(donors, i).parameter);
      m.ints(2, donors[i].index);
    });
  });
  TextParts map = read_map(map_written);
  if constexpr (!Io::kReads)
    for (auto& [key, value] : header_parts(module))
      map.emplace_back(std::string(kHeaderPrefix) + key, value);
  map_fields(io, 19, map);
  if constexpr (Io::kReads) {
    if (!donors.empty()) module.header.emplace_back("buffer_donor", donors_text(donors));
    const auto is_ours = [](const auto& item) { return item.first.starts_with(kHeaderPrefix); };
    for (const auto& item : map)
      if (is_ours(item))
        read_header_part(std::string_view(item.first).substr(kHeaderPrefix.size()), item.second,
                         module);
    std::erase_if(map, is_ours);
    if (!map.empty()) module.header.emplace_back("frontend_attributes", map_text(map));
  }
  table_fields(io, module.header);
}

}  // namespace heddle::import
