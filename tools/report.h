// What commands print: numbers for people, values in short, and JSON to a file or standard output.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "handles.h"
#include "model_options.h"
#include "output_file.h"
#include "tensor/literal.h"

namespace heddle::tools {

class CommandLine;

// --json F. With "-" standard output holds the JSON and nothing else.
struct JsonChoice {
  OutputFile file;

  void declare(CommandLine& line);
  bool only_json() const { return file.is_standard_output(); }
  // Error: machine (cannot write). Does nothing without --json.
  Status write(const nlohmann::ordered_json& value) const;
};

std::string bytes_text(int64_t bytes);  // "1.2 MiB"
std::string ms_text(double ms);         // "12.3 ms", "45 us"
std::string count_text(int64_t count, const char* what);  // "1 shape", "2 shapes"

// In short: the values themselves where they are few, else their range.
struct ValueSummary {
  double min = 0, max = 0, mean = 0;  // of the finite elements
  int64_t finite = 0, nan = 0, infinite = 0;
};
ValueSummary summarize(const tensor::Literal& value);
std::string value_text(const tensor::Literal& value);
nlohmann::ordered_json value_json(const tensor::Literal& value);

// "cpu (avx512_vnni), 2 threads, O2, f32".
std::string where_text(const heddle_program_info& info);
// The first line: "model.onnx on cpu …; sequence=1 (not given); random inputs, seed 0".
struct Head {
  std::string model, where;
  Unbound unbound;
  bool random = false;  // all inputs
  uint64_t seed = 0;
};
std::string to_string(const Head& head);
nlohmann::ordered_json to_json(const Unbound& unbound);  // {"sequence": 1}
// What the JSON of every command that runs a program begins with.
nlohmann::ordered_json json_head(const std::string& model, const heddle_program_info& info);
// One "note: …" line each, to standard output; none with --quiet.
void print_notes(const heddle_program* program);
void print_notes(const std::vector<std::string>& notes);
std::vector<std::string> notes_of(const heddle_program* program);

int64_t peak_resident_bytes();  // VmHWM of this process

}  // namespace heddle::tools
