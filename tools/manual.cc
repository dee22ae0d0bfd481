#include "manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/heddle.h"

namespace heddle::tools {
namespace {

// As text of roff: no escapes, no requests at the start of a line, hyphens that can be copied.
std::string plain(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n'))
      result += std::string("\\&") + c;
    else
      result += c;
  }
  return result;
}

std::string option_text(const OptionInfo& option) {
  std::string names;
  for (const std::string& name : option.spellings())
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", plain(name));
  if (option.takes_value()) names += fmt::format(" \\fI{}\\fR", plain(option.value));
  std::string text = fmt::format(".TP\n{}\n{}\n", names, plain(option.help));
  if (!option.choices.empty())
    text += fmt::format("One of {}.\n", plain(fmt::format("{}", fmt::join(option.choices, ", "))));
  return text;
}

std::string command_text(const DescribedCommand& command) {
  std::string text =
      fmt::format(".SS heddle {}\n{}.\n", plain(command.name), plain(command.summary));
  for (const ArgumentInfo& each : command.arguments)
    text += fmt::format(".TP\n\\fI{}\\fR\n{}\n", plain(each.name), plain(each.help));
  for (const OptionInfo& option : command.options)
    if (!option.spellings().empty() && option.spellings().front().starts_with('-'))
      text += option_text(option);
  return text;
}

}  // namespace

std::string manual_page(const std::vector<DescribedCommand>& commands) {
  std::string text = fmt::format(
      ".TH HEDDLE 1 \"\" \"heddle {}.{}.{}\" \"User Commands\"\n"
      ".SH NAME\nheddle \\- compiles deep\\-learning models and runs them\n"
      ".SH SYNOPSIS\n.B heddle\n.I COMMAND\n[\\fIARGUMENTS\\fR]\n.br\n"
      ".B heddle\n.I COMMAND\n.B \\-\\-help\n"
      ".SH DESCRIPTION\n"
      "Reads a model (ONNX, HLO, StableHLO or a compiled program, told by its content), compiles "
      "it "
      "for this machine and runs it. Results go to standard output, everything else to standard "
      "error.\n.SH COMMANDS\n",
      HEDDLE_VERSION_MAJOR, HEDDLE_VERSION_MINOR, HEDDLE_VERSION_PATCH);
  for (const DescribedCommand& command : commands) text += command_text(command);
  return text +
         ".SH EXIT STATUS\n"
         ".TP\n.B 0\nSuccess.\n.TP\n.B 1\nA comparison failed.\n.TP\n.B 2\nThe input is at fault.\n"
         ".TP\n.B 3\nThe machine is: out of memory, cannot write.\n"
         ".SH ENVIRONMENT\n"
         ".TP\n.B HEDDLE_CACHE\nThe folder of compiled code, or \"off\".\n"
         ".TP\n.B HEDDLE_CODE_GENERATOR\nThe file libheddle\\-llvm.so, where it is not beside the "
         "command or in ../lib/heddle.\n"
         ".TP\n.B HEDDLE_ISA\nThe most to compile for: portable, avx2 or avx512.\n"
         ".TP\n.B HEDDLE_PEER_PYTHON\nThe Python that runs the peers of heddle bench \\-\\-vs.\n"
         ".TP\n.B HEDDLE_ONEDNN\nThe file of oneDNN, or \"off\".\n"
         ".TP\n.B HEDDLE_CUDA_DRIVER, HEDDLE_NVRTC\nThe files of NVIDIA's driver and compiler.\n"
         ".SH FILES\n.TP\n.I ~/.cache/heddle\nCompiled code and tuning records.\n";
}

}  // namespace heddle::tools
