// Private to report_document.cc: the commands of a run as JSON, and what goes between them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dataflow.h"
#include "program/program.h"
#include "report_document.h"

namespace heddle::tools {

// Texts that many things say, each once, in the order of adding.
class Interned {
 public:
  size_t add(const std::string& text);
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
  std::map<std::string, size_t> numbers_;
};

class ReportCommands {
 public:
  ReportCommands(const ReportSources& sources, PageTexts* texts);
  // "nodes", "layers", "repeats", "weights", "commands", "edges", "reasons", "inputs", "outputs",
  // "loose_edges".
  void add_to(nlohmann::ordered_json* json);

 private:
  struct One {
    const program::Command* command;
    const program::CommandInfo* info;
    int depth;
  };
  nlohmann::ordered_json command_json(size_t number);
  nlohmann::ordered_json weights_of(size_t number);
  void add_layers(nlohmann::ordered_json* json);
  void add_edges(nlohmann::ordered_json* json);
  void add_ports(nlohmann::ordered_json* json);

  const ReportSources& sources_;
  const program::Program& program_;
  PageTexts* texts_;
  Dataflow flow_;
  std::vector<std::vector<program::BufferId>> once_sources_;
  std::vector<One> all_;
  std::vector<size_t> layers_;
  std::map<std::string, double> predicted_ns_;  // of a launch, by kernel
  std::map<uint32_t, size_t> weight_numbers_;   // by buffer
  nlohmann::ordered_json weights_ = nlohmann::ordered_json::array();
  std::vector<std::string> shapes_;  // by buffer: of what is first seen of it
  Interned nodes_, reasons_;
};

}  // namespace heddle::tools
