// What heddle quantize tells: for people, as JSON, as a page.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agreement.h"
#include "quantize/histogram.h"

namespace heddle::tools {

struct TimeOfRun {
  double f32_ms = 0, ms = 0;  // before and after
};

struct ReportedLayer {
  std::string name, op;
  std::string type;  // "int8", "int4", "f32"
  std::string why;   // of f32: "by --keep"
  int64_t bytes = 0, float_bytes = 0;
  std::string input;                               // the activation's name
  std::optional<double> weights_sqnr, input_sqnr;  // dB
  std::optional<quantize::Range> range, seen;      // of the activation: chosen; lowest to highest
  std::optional<double> smoothed, smoothing_gain;  // SmoothQuant's exponent; predicted, dB
  std::optional<double> gptq_ratio;                // GPTQ's error of the layer, 1: plain rounding's
  TimeOfRun time;
};

struct QuantizeReport {
  std::string model, output, weights, method;
  bool symmetric = true, random = false, near = false;
  int64_t samples = 0, held_out = 0;
  double seconds = 0, least_cosine = 0;
  int64_t bytes = 0, float_bytes = 0;  // all of the model; float: of its weights
  int64_t equalized = 0, corrected = 0;
  int64_t smoothed = 0;    // layers
  int64_t unfoldable = 0;  // that SmoothQuant would help, but nothing takes the factors
  int64_t gptq = 0;        // layers
  TimeOfRun others, all;   // kernels of no layer; all kernels
  Agreement agreement;
  std::vector<std::string> notes;
  std::vector<ReportedLayer> layers;
};

void print(const QuantizeReport& report);  // to standard output
nlohmann::ordered_json to_json(const QuantizeReport& report);
std::string html_of(const QuantizeReport& report);  // one file, nothing from outside

}  // namespace heddle::tools
