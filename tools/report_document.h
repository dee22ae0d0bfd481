// The document of a report: all that heddle report and explain --html show of a program, as JSON
// (docs/report.md says what each key is) and long texts beside it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/session.h"
#include "handles.h"
#include "page_texts.h"
#include "run_times.h"

namespace heddle::program {
struct Program;
}

namespace heddle::tools {

// What is known of the model before a compilation takes it.
struct ReportedModel {
  std::string path, format, name, producer;
  int64_t bytes = 0;  // of its file
  std::vector<std::pair<std::string, int64_t>> unbound;
};
ReportedModel reported_model(const std::string& path, const heddle_model* model);

// One command of one run on one thread.
struct ThreadSpan {
  size_t thread = 0, command = 0;
  double begin_us = 0, us = 0;
};

// What was measured; nothing of it: `commands` is empty.
struct ReportedTimes {
  std::string source;              // "measured here", or the file
  std::string inputs;              // what they were
  std::vector<double> commands;    // ms in one run, by command
  std::vector<std::string> names;  // of the commands that were timed
  std::vector<int64_t> launches;   // of one run, by command; empty: not known
  std::vector<double> runs;        // ms
  std::vector<std::string> threads;
  std::vector<ThreadSpan> spans;                                    // of one run that was traced
  nlohmann::ordered_json versus = nlohmann::ordered_json::array();  // as of bench --json
};

// Models whose shapes are known late run several programs, of which the report shows one: whether
// the times are those of its commands.
bool fits(const ReportedTimes& times, const program::Program& program);

struct ReportSources {
  ReportedModel model;
  const api::Program& program;       // compiled with `explain`
  std::string folder;                // the compilation's files (--dump); empty: none
  std::vector<std::string> words;    // what runs it again: the command, and
  std::vector<std::string> options;  // the options that heddle run and bench take, too
  ReportedTimes times;
  std::vector<std::string> notes;  // besides the program's
  // What heddle check found, of its --json: "source", "against", "pass", "inputs", "outputs"; or
  // null.
  nlohmann::ordered_json check;
};

struct ReportDocument {
  nlohmann::ordered_json json;
  PageTexts texts;

  nlohmann::ordered_json whole() const;  // with the texts, for --json
  std::string html() const;              // the page
};
// Error (machine): a file of the compilation cannot be read.
Result<ReportDocument> report_document(const ReportSources& sources);

}  // namespace heddle::tools
