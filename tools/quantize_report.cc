#include "quantize_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "page_text.h"
#include "report.h"

namespace heddle::tools {

using nlohmann::ordered_json;

namespace {

std::string decibels_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f} dB", *value) : "-";
}

std::string state_of(const ReportedLayer& layer) {
  std::string text = layer.type == "f32" ? "float: " + layer.why : layer.type;
  if (layer.smoothed) text += fmt::format(", smoothed by {}", *layer.smoothed);
  if (layer.gptq_ratio) text += fmt::format(", GPTQ: {:.2f} of the error", *layer.gptq_ratio);
  return text;
}

ordered_json to_json(const TimeOfRun& time) { return {{"f32_ms", time.f32_ms}, {"ms", time.ms}}; }

ordered_json to_json(const ReportedLayer& from) {
  ordered_json layer = {{"name", from.name},
                        {"op", from.op},
                        {"type", from.type},
                        {"float_bytes", from.float_bytes},
                        {"time", to_json(from.time)}};
  if (from.smoothed) {
    layer["smoothed"] = *from.smoothed;
    layer["smoothing_gain_db"] = *from.smoothing_gain;
  }
  if (from.type == "f32") {
    layer["why"] = "float: " + from.why;
    return layer;
  }
  layer["bytes"] = from.bytes;
  layer["weights_sqnr_db"] = *from.weights_sqnr;
  if (from.input_sqnr) layer["input_sqnr_db"] = *from.input_sqnr;
  if (from.range) {
    layer["input"] = from.input;
    layer["input_range"] = {from.range->low, from.range->high};
    layer["input_seen"] = {from.seen->low, from.seen->high};
  }
  if (from.gptq_ratio) layer["gptq_error_ratio"] = *from.gptq_ratio;
  return layer;
}

}  // namespace

void print(const QuantizeReport& report) {
  fmt::print("{}: {} layers, {} samples, {:.1f} s\n", report.model, report.layers.size(),
             report.samples, report.seconds);
  print_notes(report.notes);
  fmt::print("{:>10} {:>10} {:>9} {:>9} {:>10} {:>10}\n", "bytes", "before", "weights", "input",
             "time", "before");
  for (const ReportedLayer& layer : report.layers)
    fmt::print("{:>10} {:>10} {:>9} {:>9} {:>10} {:>10}  {:10} {} ({})\n", bytes_text(layer.bytes),
               bytes_text(layer.float_bytes), decibels_text(layer.weights_sqnr),
               decibels_text(layer.input_sqnr), ms_text(layer.time.ms), ms_text(layer.time.f32_ms),
               layer.op, layer.name, state_of(layer));
  fmt::print("{:>52} {:>10}  everything else\n", ms_text(report.others.ms),
             ms_text(report.others.f32_ms));
  const auto quantized = std::count_if(report.layers.begin(), report.layers.end(),
                                       [](const auto& layer) { return layer.type != "f32"; });
  fmt::print("{} of {} quantised; {} of channels equalised, {} corrected\n", quantized,
             count_text(std::ssize(report.layers), "layer"), count_text(report.equalized, "pair"),
             report.corrected == 1 ? "1 bias" : fmt::format("{} biases", report.corrected));
  if (report.smoothed + report.unfoldable > 0)
    fmt::print(
        "{} layers smoothed; {} more have no layer before them that could take the factors\n",
        report.smoothed, report.unfoldable);
  if (report.gptq > 0) fmt::print("{} layers rounded by GPTQ\n", report.gptq);
  fmt::print("{}: {}, {:.3f} of the {} that the weights took before\n", report.output,
             bytes_text(report.bytes),
             static_cast<double>(report.bytes) / static_cast<double>(report.float_bytes),
             bytes_text(report.float_bytes));
  fmt::print("a run takes {}; {} before\n", ms_text(report.all.ms), ms_text(report.all.f32_ms));
  fmt::print("on {} samples held out of calibration: {}\n", report.held_out,
             to_string(report.agreement));
  fmt::print("{}\n", report.near ? "pass"
                                 : fmt::format("FAIL: the cosine is less than {} (--cosine)",
                                               report.least_cosine));
}

ordered_json to_json(const QuantizeReport& report) {
  ordered_json result = {{"schema", 1},
                         {"model", report.model},
                         {"output", report.output},
                         {"weights", report.weights},
                         {"method", report.method},
                         {"symmetric", report.symmetric},
                         {"samples", report.samples},
                         {"random", report.random},
                         {"held_out", report.held_out},
                         {"seconds", report.seconds},
                         {"bytes", report.bytes},
                         {"float_bytes", report.float_bytes},
                         {"equalised_pairs", report.equalized},
                         {"corrected_biases", report.corrected},
                         {"smoothed_layers", report.smoothed},
                         {"unfoldable_layers", report.unfoldable},
                         {"gptq_layers", report.gptq},
                         {"time", to_json(report.all)},
                         {"time_of_others", to_json(report.others)},
                         {"agreement", to_json(report.agreement)},
                         {"pass", report.near},
                         {"notes", report.notes}};
  for (const ReportedLayer& layer : report.layers) result["layers"].push_back(to_json(layer));
  return result;
}

std::string html_of(const QuantizeReport& report) {
  return filled(kQuantizeHtml, {{"{title}", escaped(report.model + ", quantised")},
                                {"{style}", kQuantizeStyle},
                                {"{data}", script_text(to_json(report))},
                                {"{script}", kQuantizeScript}});
}

}  // namespace heddle::tools
