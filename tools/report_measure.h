// What heddle report measures: times of commands, one run by threads, other engines in turn.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "handles.h"
#include "report_document.h"
#include "tensor/npz.h"

namespace heddle::tools {

class CommandLine;

struct MeasureChoices {
  bool profile = false;
  std::optional<int64_t> runs;
  std::vector<std::string> versus;
  std::string python;

  void declare(CommandLine& line);
  bool asked() const { return profile || !versus.empty(); }
  // Errors (user): a number or a peer that there is not.
  Status check() const;
};

// What peers read, and with what ours runs.
struct MeasuredInputs {
  std::string model;         // its file
  std::string peers_inputs;  // a file of write_inputs_of_rivals; where peers are asked for
  std::string description;
  std::vector<tensor::Literal> values;
};

// Runs the program: a few times to warm up, once traced, then timed, then in turn with peers.
// Errors: of runs and of peers.
Result<ReportedTimes> measure_report(const MeasureChoices& choices, heddle_program* program,
                                     MeasuredInputs inputs);

}  // namespace heddle::tools
