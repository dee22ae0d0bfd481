#include "support_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heddle::tools {

using import::SupportReport;
using import::Unsupported;
using nlohmann::ordered_json;

std::string support_text(const std::string& model, const SupportReport& report) {
  std::string text =
      fmt::format("{}: {} nodes, {} operators\n", model, report.nodes, report.operators);
  for (const Unsupported& fault : report.faults) {
    text += fmt::format("{} {}", fault.kind, fault.what);
    if (fault.kind == "operator" && fault.opset > 0) text += fmt::format(", opset {}", fault.opset);
    text += fmt::format(", {} place{}", fault.count, fault.count == 1 ? "" : "s");
    if (!fault.detail.empty()) text += ": " + fault.detail;
    text += fmt::format("\n  at {}{}\n  way out: {}\n", fmt::join(fault.places, ", "),
                        fault.count > static_cast<int64_t>(fault.places.size()) ? ", ..." : "",
                        fault.way_out);
  }
  if (!report.refused.empty()) text += fmt::format("refused: {}\n", report.refused);
  if (!report.late.empty())
    text += fmt::format("shapes depend on values that a run must provide: {}\n", report.late);
  return text + (report.supported() ? "supported\n" : "not supported\n");
}

ordered_json support_json(const std::string& model, const SupportReport& report) {
  ordered_json faults = ordered_json::array();
  for (const Unsupported& fault : report.faults)
    faults.push_back({{"kind", fault.kind},
                      {"what", fault.what},
                      {"detail", fault.detail},
                      {"opset", fault.opset},
                      {"count", fault.count},
                      {"places", fault.places},
                      {"way_out", fault.way_out}});
  return {{"schema", 1},
          {"model", model},
          {"supported", report.supported()},
          {"nodes", report.nodes},
          {"operators", report.operators},
          {"faults", std::move(faults)},
          {"refused", report.refused},
          {"late", report.late}};
}

}  // namespace heddle::tools
