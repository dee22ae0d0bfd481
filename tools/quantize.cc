// heddle quantize: a float ONNX model with weights of 8 or 4 bits, from what a calibration set
// shows.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "command_line.h"
#include "commands.h"
#include "input_rounding.h"
#include "layer_times.h"
#include "model_options.h"
#include "output_file.h"
#include "quantize/adjust.h"
#include "quantize/smooth.h"
#include "quantize_report.h"
#include "quantize_search.h"
#include "report.h"

namespace heddle::tools {
namespace {

using quantize::Histogram;
using quantize::Kind;
using quantize::Layer;

class Quantize : public Command {
 public:
  std::string_view name() const override { return "quantize"; }
  std::string_view summary() const override {
    return "makes a model with weights of 8 or 4 bits, by a calibration set";
  }

  void declare(CommandLine& line) override {
    open_.declare(line);
    line.group("Quantisation");
    line.output(out_, "-o,--output", "F.onnx", "the quantised model (ONNX)");
    line.choice(weights_, "--weights", {"int8", "int4"},
                "int8: weights and activations; int4: weights alone, in blocks (default: int8)");
    line.text(calib_, "--calib", "DIR|F.npz",
              "the calibration set: npz files, one a sample; or one file whose arrays hold many "
              "samples along their first dimension (default: random values)");
    line.choice(method_, "--method", {"mse", "minmax", "percentile", "kl"},
                "how ranges of activations are chosen (default: mse)");
    line.real(percentile_, "--percentile", "P", "of --method percentile (default: 99.999)");
    line.flag(asymmetric_, "--asymmetric",
              "stores activations that may be negative as u8 with a zero point instead of s8");
    line.flag(
        unsigned_, "--unsigned",
        "stores symmetric activations as u8 with zero point 128, which ONNX Runtime multiplies "
        "faster on x86");
    line.flag(
        float_outputs_, "--float-outputs",
        "keeps the results of MatMul and Gemm as floats: more accurate, but ONNX Runtime then "
        "multiplies floats");
    line.number(block_, "--block", "N", "int4: how many weights share a scale (default: 32)");
    line.flag(gptq_, "--gptq",
              "int4: later weights compensate for the rounding error of each weight (GPTQ), "
              "according to the inputs in the calibration set");
    line.flag(apart_, "--external-data",
              "puts weights into F.onnx.data beside the model (always done from 1.5 GiB on)");
    line.list(keep_, "--keep", "NAME", "a node that stays float");
    line.flag(plain_, "--no-adjust",
              "no equalisation, no bias correction, and smoothing only with --smooth");
    line.text(smooth_, "--smooth", "auto|off|A",
              "int8: activations with a few large channels are divided by max|x|^A / max|w|^(1-A), "
              "where that is predicted to help (default: auto, the best A of 0.25, 0.5 and 0.75)");
    line.real(cosine_, "--cosine", "X",
              "keeps layers as floats, the worst first, until the outputs are this similar "
              "(default: 0.98)");
    line.output(statistics_, "--statistics", "F",
                "a file that keeps the statistics of the calibration set, so that the same command "
                "can resume");
    line.output(html_, "--html", "F.html",
                "also writes a page: the error of each layer, ranges, agreement");
    line.number(seed_, "--seed", "N", "seed of random inputs (default: 0)");
    line.files()->reads([this](const FileUse::Add& add) {
      if (calib_.ends_with(".npz")) add("--calib", calib_);
    });
    json_.declare(line);
    line.examples(
        "  heddle quantize resnet50.onnx -o small.onnx --calib images/\n"
        "  heddle quantize llama.onnx -o llama4.onnx --weights int4 --block 32\n"
        "  heddle quantize model.onnx -o q.onnx --calib set.npz --method kl --json report.json\n");
  }

  Result<int> run() override {
    HEDDLE_RETURN_IF_ERROR(check_options());
    HEDDLE_ASSIGN_OR_RETURN(import::OnnxEdit model, import::OnnxEdit::open(open_.model));
    HEDDLE_RETURN_IF_ERROR(choose_layers(model));
    float_bytes_ = model.bytes();
    const auto begin = std::chrono::steady_clock::now();
    const Interrupt interrupt;
    HEDDLE_ASSIGN_OR_RETURN(
        runs_, CalibrationRuns::open(
                   {open_, calib_, seed_.value_or(0), out_.target() + ".part.onnx", is_apart()}));
    if (runs_.samples().is_random())
      notes_.push_back(fmt::format(
          "no --calib: {} random samples; real inputs may have other ranges", runs_.count()));
    HEDDLE_RETURN_IF_ERROR(prepare(&model));
    HEDDLE_ASSIGN_OR_RETURN(found_, search(how_to_search(), &model, &plan_.chosen));
    notes_.insert(notes_.end(), found_.notes.begin(), found_.notes.end());
    HEDDLE_RETURN_IF_ERROR(publish(model));
    HEDDLE_RETURN_IF_ERROR(time(&model));
    progress_.hide();
    QuantizeReport report = reported();
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!json_.only_json()) print(report);
    HEDDLE_RETURN_IF_ERROR(json_.write(to_json(report)));
    if (html_.given()) HEDDLE_RETURN_IF_ERROR(html_.write(html_of(report)));
    return found_.near ? 0 : 1;
  }

 private:
  bool is_int4() const { return weights_ == "int4"; }
  // From here on weights lie beside a model: an ONNX file holds 2 GiB.
  bool is_apart() const { return apart_ || float_bytes_ > int64_t{3} << 29; }

  Status check_options() const {
    if (!out_.given()) return user_error("quantize: no output was named; add -o F.onnx");
    if (out_.is_standard_output()) return user_error("quantize: -o -: wanted a file");
    const int64_t block = block_.value_or(32);
    if (block < 16 || block > 256 || (block & (block - 1)) != 0)
      return user_error("--block {}: wanted 16, 32, 64, 128 or 256", block);
    if (percentile_ && !(*percentile_ > 50 && *percentile_ <= 100))
      return user_error("--percentile {}: wanted more than 50, at most 100", *percentile_);
    if (cosine_ && !(*cosine_ >= -1 && *cosine_ <= 1))
      return user_error("--cosine {}: wanted -1 to 1", *cosine_);
    if (is_int4() && !smooth_.empty() && smooth_ != "off")
      return user_error("--smooth {}: only with --weights int8; got int4", smooth_);
    if (gptq_ && !is_int4()) return user_error("--gptq: only with --weights int4; got int8");
    if (smooth_.empty() || smooth_ == "auto" || smooth_ == "off") return {};
    if (const auto exponent = smooth_exponent(); !exponent || !(*exponent >= 0 && *exponent <= 1))
      return user_error("--smooth {}: wanted auto, off or a number from 0 (off) to 1", smooth_);
    return {};
  }

  std::optional<double> smooth_exponent() const {
    double exponent = 0;
    const char* end = smooth_.data() + smooth_.size();
    const auto read = std::from_chars(smooth_.data(), end, exponent);
    if (read.ec != std::errc() || read.ptr != end) return {};
    return exponent;
  }
  bool may_smooth() const {
    return !is_int4() && (!plain_ || !smooth_.empty()) && smooth_ != "off" &&
           smooth_exponent() != 0.0;
  }

  Status choose_layers(const import::OnnxEdit& model) {
    if (const Status usable = quantize::check_float(model, !is_int4()); !usable)
      return error_in(open_.model, usable.error());
    layers_ = quantize::find_layers(model, !float_outputs_);
    if (is_int4())
      std::erase_if(layers_,
                    [](const Layer& layer) { return layer.kind != Kind::table && !layer.blocks; });
    if (layers_.empty())
      return user_error(
          "{}: nothing to quantise: no product, convolution or table of f32 "
          "constants of a useful size",
          open_.model);
    plan_.chosen.assign(layers_.size(), true);
    for (const std::string& name : keep_) {
      bool found = false;
      for (size_t i = 0; i < layers_.size(); ++i)
        if (layers_[i].name == name) keep(i, "by --keep"), found = true;
      if (!found) return user_error("--keep {}: no layer that is quantised has that name", name);
    }
    return {};
  }
  void keep(size_t layer, const char* why) {
    plan_.chosen[layer] = false;
    why_float_.emplace(layer, why);
  }

  // What the rewriting goes by: adjusted weights, and what the set shows.
  Status prepare(import::OnnxEdit* model) {
    if (is_int4()) {
      if (statistics_.given())
        notes_.push_back("--statistics: int4 uses no ranges; nothing is written");
      HEDDLE_RETURN_IF_ERROR(see(model));
      return rounding_.round(*model, layers_, block_.value_or(32), &seen_, &plan_, &progress_);
    }
    if (!plain_) {
      HEDDLE_ASSIGN_OR_RETURN(equalized_, quantize::equalize(*model, layers_, &plan_));
    }
    HEDDLE_RETURN_IF_ERROR(see(model));
    if (may_smooth()) HEDDLE_RETURN_IF_ERROR(smooth(model));
    choose_ranges();
    if (!plain_) {
      HEDDLE_ASSIGN_OR_RETURN(corrected_,
                              quantize::correct_biases(*model, layers_, means(), &plan_));
    }
    return {};
  }

  Wanted wanted() const {
    Wanted all;
    std::set<std::string> names;
    all.sums = rounding_.outputs();
    if (is_int4()) return all;
    for (const Layer& layer : layers_)
      for (const std::string& name : {layer.input, layer.output}) {
        if (name.empty()) continue;
        names.insert(name);
        if (layer.kind == Kind::conv) all.images.insert(name);
      }
    all.values.assign(names.begin(), names.end());
    return all;
  }

  // Runs the float model over the set.
  Status see(import::OnnxEdit* model) {
    model->clear();
    for (const auto& [name, value] : plan_.values) model->set(name, value);
    if (gptq_) rounding_.add_outputs(layers_, plan_, model, &notes_);
    HEDDLE_ASSIGN_OR_RETURN(
        seen_, collect(runs_, model, wanted(), &statistics_file_, &progress_, &notes_));
    return {};
  }

  // Where that changed something, its values are seen again: their ranges are others.
  Status smooth(import::OnnxEdit* model) {
    std::map<std::string, quantize::Channels> channels;
    for (const auto& [name, seen] : seen_.seen.values()) {
      if (seen.each == 0) continue;
      quantize::Channels& one = channels[name];
      one.most.assign(seen.most.begin(), seen.most.end());
      for (double sum : seen.squares) one.power.push_back(sum / static_cast<double>(seen.each));
      one.rounding = seen.histogram.error(range_of(seen.histogram));
    }
    HEDDLE_ASSIGN_OR_RETURN(smoothed_,
                            quantize::smooth(*model, layers_, channels, smooth_exponent(), &plan_));
    if (count_smoothed() == 0) return {};
    auto expected = std::move(seen_.expected);
    HEDDLE_RETURN_IF_ERROR(see(model));
    seen_.expected = std::move(expected);
    return {};
  }
  int64_t count_smoothed() const {
    return std::count_if(smoothed_.begin(), smoothed_.end(),
                         [](const auto& layer) { return layer.exponent > 0; });
  }

  std::vector<std::vector<double>> means() const {
    std::vector<std::vector<double>> all;
    for (const Layer& layer : layers_) all.push_back(seen_.seen.means(layer.input));
    return all;
  }

  quantize::Range range_of(const Histogram& histogram) const {
    const std::map<std::string, quantize::Method> methods = {
        {"mse", quantize::Method::mse},
        {"minmax", quantize::Method::minmax},
        {"percentile", quantize::Method::percentile},
        {"kl", quantize::Method::kl}};
    return histogram.range(methods.at(method_), !asymmetric_, percentile_.value_or(99.999));
  }

  void choose_ranges() {
    for (const auto& [name, seen] : seen_.seen.values()) {
      if (seen.histogram.count() == 0) continue;
      const quantize::Range range = range_of(seen.histogram);
      ranges_[name] = range;
      quantize::Params params = quantize::params_of(range, !asymmetric_);
      if (unsigned_ && params.is_signed) params = {params.scale, 128, false};
      plan_.activations[name] = params;
      if (seen.histogram.unusable() > 0)
        notes_.push_back(fmt::format("{}: {} values that are not finite were left out", name,
                                     seen.histogram.unusable()));
    }
    // What was never computed as f32 has no range.
    for (size_t i = 0; i < layers_.size(); ++i)
      if (layers_[i].kind != Kind::table && !plan_.activations.contains(layers_[i].input))
        keep(i, "its input has no f32 range");
  }

  // What the rounding of a layer's activation leaves, in dB; nothing: it is not rounded.
  std::optional<double> input_sqnr(const Layer& layer) const {
    const auto range = ranges_.find(layer.input);
    if (range == ranges_.end()) return {};
    const Histogram& histogram = seen_.seen.values().at(layer.input).histogram;
    return quantize::decibels(histogram.power(), histogram.error(range->second));
  }

  Search how_to_search() {
    return {runs_,
            seen_.expected,
            least_cosine(),
            [this](import::OnnxEdit* model) -> Result<std::vector<quantize::Stored>> {
              model->clear();
              return is_int4() ? quantize::rewrite_int4(model, layers_, plan_, block_.value_or(32))
                               : quantize::rewrite_int8(model, layers_, plan_);
            },
            [this](size_t i) { return input_sqnr(layers_[i]).value_or(1e9); },
            &progress_};
  }
  double least_cosine() const { return cosine_.value_or(0.98); }

  Status publish(const import::OnnxEdit& model) {
    HEDDLE_ASSIGN_OR_RETURN(const EditedFiles written,
                            edited_files(model, out_.target(), is_apart()));
    if (!written.apart.bytes.empty()) {
      OutputFile data(out_.path + ".data");
      HEDDLE_RETURN_IF_ERROR(data.prepare("-o"));
      HEDDLE_RETURN_IF_ERROR(data.write(written.apart.bytes));
    }
    return out_.write(written.model);
  }

  // What is written beside the model as it was.
  Status time(import::OnnxEdit* model) {
    HEDDLE_ASSIGN_OR_RETURN(const EditedModel quantized, runs_.compile(*model));
    model->clear();
    HEDDLE_ASSIGN_OR_RETURN(const EditedModel f32, runs_.compile(*model));
    std::vector<TimedLayer> layers;
    for (const Layer& layer : layers_)
      layers.push_back({layer.name, static_cast<double>(layer.weight_elems)});
    HEDDLE_ASSIGN_OR_RETURN(times_, time_layers(runs_, f32, quantized, layers, &progress_));
    return {};
  }

  QuantizeReport reported() const {
    QuantizeReport report{open_.model, out_.path,    weights_,
                          method_,     !asymmetric_, runs_.samples().is_random(),
                          found_.near};
    report.samples = runs_.count();
    report.held_out = runs_.held_out();
    report.least_cosine = least_cosine();
    report.bytes = static_cast<int64_t>(found_.bytes);
    report.float_bytes = float_bytes_;
    report.equalized = equalized_;
    report.corrected = corrected_;
    report.smoothed = count_smoothed();
    report.unfoldable = std::count_if(smoothed_.begin(), smoothed_.end(),
                                      [](const auto& layer) { return layer.unfoldable; });
    report.gptq = static_cast<int64_t>(rounding_.ratios().size());
    report.agreement = found_.agreement;
    report.others = {times_.f32.others, times_.quantized.others};
    report.all = {times_.f32.total(), times_.quantized.total()};
    report.notes = notes_;
    for (size_t i = 0; i < layers_.size(); ++i) report.layers.push_back(reported_layer(i));
    return report;
  }

  ReportedLayer reported_layer(size_t i) const {
    const Layer& layer = layers_[i];
    ReportedLayer told{layer.name, layer.op_type};
    told.input = layer.input;
    told.bytes = told.float_bytes = 4 * layer.weight_elems;
    told.time = {times_.f32.layers[i], times_.quantized.layers[i]};
    if (!smoothed_.empty() && smoothed_[i].exponent > 0) {
      told.smoothed = smoothed_[i].exponent;
      told.smoothing_gain = smoothed_[i].gain;
    }
    if (!plan_.chosen[i]) {
      const auto why = why_float_.find(i);
      told.type = "f32";
      told.why = why == why_float_.end() ? "its error is among the largest" : why->second;
      return told;
    }
    told.type = layer.kind == Kind::table || !is_int4() ? "int8" : "int4";
    told.bytes = found_.stored[i].bytes;
    told.weights_sqnr = found_.stored[i].sqnr;
    const auto ratio = rounding_.ratios().find(i);
    if (ratio != rounding_.ratios().end()) told.gptq_ratio = ratio->second;
    told.input_sqnr = input_sqnr(layer);
    if (told.input_sqnr) {
      told.range = ranges_.at(layer.input);
      told.seen = seen_.seen.values().at(layer.input).histogram.limits();
    }
    return told;
  }

  OpenChoices open_;
  OutputFile out_, statistics_, html_;
  std::string weights_ = "int8", calib_, method_ = "mse", smooth_;
  std::optional<double> percentile_, cosine_;
  std::optional<int64_t> block_, seed_;
  bool asymmetric_ = false, unsigned_ = false, float_outputs_ = false, plain_ = false,
       apart_ = false, gptq_ = false;
  std::vector<std::string> keep_;
  JsonChoice json_;

  std::vector<Layer> layers_;
  quantize::Plan plan_;
  std::map<size_t, const char*> why_float_;  // layers that were never to be quantised
  CalibrationRuns runs_;
  StatisticsFile statistics_file_{&statistics_};
  Collected seen_;
  std::vector<quantize::Smoothing> smoothed_;  // by layer
  InputRounding rounding_;
  std::map<std::string, quantize::Range> ranges_;
  Found found_;
  TimesBeforeAndAfter times_;
  std::vector<std::string> notes_;
  int64_t equalized_ = 0, corrected_ = 0, float_bytes_ = 0;
  Progress progress_;
};

}  // namespace

std::unique_ptr<Command> make_quantize() { return std::make_unique<Quantize>(); }

}  // namespace heddle::tools
