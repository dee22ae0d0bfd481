// heddle quantize: a float ONNX model with weights of 8 or 4 bits, from what a calibration set
// shows.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "agreement.h"
#include "base/hash.h"
#include "calibration.h"
#include "command_line.h"
#include "commands.h"
#include "edited_model.h"
#include "model_options.h"
#include "output_file.h"
#include "quantize/adjust.h"
#include "report.h"
#include "terminal.h"
#include "value_statistics.h"
#include "values.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;
using quantize::Histogram;
using quantize::Kind;
using quantize::Layer;
using tensor::Literal;

constexpr int64_t kRandomSamples = 8, kMostHeldOut = 32;
constexpr int kMostReverts = 8;
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
                "int8: weights and activations; int4: weights alone, in blocks (int8)");
    line.text(calib_, "--calib", "DIR|F.npz",
              "the calibration set: npz files, one a sample; or one file whose arrays hold many "
              "samples along their first dimension (default: random values)");
    line.choice(method_, "--method", {"mse", "minmax", "percentile", "kl"},
                "how ranges of activations are chosen (mse)");
    line.real(percentile_, "--percentile", "P", "of --method percentile (99.999)");
    line.flag(asymmetric_, "--asymmetric",
              "activations that may be negative as u8 with a zero point, not as s8");
    line.flag(
        unsigned_, "--unsigned",
        "symmetric activations as u8 with zero point 128: ONNX Runtime multiplies them faster "
        "on x86");
    line.flag(float_outputs_, "--float-outputs",
              "what MatMul and Gemm give stays float: nearer, but ONNX Runtime then multiplies "
              "floats");
    line.number(block_, "--block", "N", "weights that share a scale, of int4 (32)");
    line.flag(apart_, "--external-data",
              "weights in F.onnx.data beside the model, as they are anyway from 1.5 GiB on");
    line.list(keep_, "--keep", "NAME", "a node that stays float");
    line.flag(plain_, "--no-adjust", "without equalisation and bias correction");
    line.real(cosine_, "--cosine", "X",
              "layers stay float, the worst first, until the outputs are that near (0.98)");
    line.output(statistics_, "--statistics", "F",
                "keeps what was seen of the calibration set; the same command goes on from it");
    line.number(seed_, "--seed", "N", "seed of random inputs (0)");
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
    for (const Layer& layer : layers_)
      if (layer.kind == Kind::conv) convolved_.insert({layer.input, layer.output});
    HEDDLE_RETURN_IF_ERROR(choose_layers());
    float_bytes_ = model.bytes();
    const auto begin = std::chrono::steady_clock::now();
    const Interrupt interrupt;
    HEDDLE_RETURN_IF_ERROR(open_samples());
    if (!is_int4() && !plain_) {
      HEDDLE_ASSIGN_OR_RETURN(equalized_, quantize::equalize(model, layers_, &plan_));
    }
    HEDDLE_RETURN_IF_ERROR(collect(&model));
    if (!is_int4()) {
      choose_ranges();
      if (!plain_) {
        HEDDLE_ASSIGN_OR_RETURN(corrected_,
                                quantize::correct_biases(model, layers_, means(), &plan_));
      }
    }
    HEDDLE_ASSIGN_OR_RETURN(const bool near, search(&model));
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    HEDDLE_RETURN_IF_ERROR(publish(model));
    progress_.hide();
    if (!json_.only_json()) print(near);
    HEDDLE_RETURN_IF_ERROR(json_.write(json(near)));
    return near ? 0 : 1;
  }

 private:
  bool is_int4() const { return weights_ == "int4"; }
  double least_cosine() const { return cosine_.value_or(0.98); }

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
    return {};
  }

  Status choose_layers() {
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

  // The extents of the first sample bind dynamic dimensions, where the model's own do not fit it.
  Status open_samples() {
    Result<Samples> samples = samples_for({});
    if (!samples && !calib_.empty()) {
      InputChoices file;
      file.file = calib_.ends_with(".npz") ? calib_ : "";
      auto first = file.read();
      if (first && !first->empty()) {
        Result<Samples> whole = samples_for(*first);
        if (whole) {
          extents_ = std::move(*first);
          samples = std::move(whole);
        }
      }
    }
    if (!samples) return tl::unexpected<Error>(samples.error());
    samples_ = std::move(*samples);
    if (extents_.empty() && !samples_.is_random() && !calib_.ends_with(".npz")) {
      HEDDLE_ASSIGN_OR_RETURN(extents_, samples_.read(0));
    }
    if (samples_.is_random())
      notes_.push_back(
          fmt::format("no --calib: {} random samples, whose ranges need not be those of real ones",
                      samples_.count()));
    return {};
  }

  Result<Samples> samples_for(tensor::NamedLiterals given) const {
    HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, open_.open(given, InputChoices()));
    std::vector<std::pair<std::string, std::vector<int64_t>>> inputs;
    for (int64_t i = 0; i < info_of(model.get()).inputs; ++i) {
      const heddle_port port = input_of(model.get(), i);
      inputs.emplace_back(port.name, std::vector<int64_t>(port.dims, port.dims + port.rank));
    }
    return Samples::open(calib_, kRandomSamples, inputs);
  }

  Result<std::vector<Literal>> inputs(const heddle_model* model, int64_t number) const {
    HEDDLE_ASSIGN_OR_RETURN(const tensor::NamedLiterals given, samples_.read(number));
    InputChoices choices;
    choices.random_rest = true;
    choices.seed = seed_.value_or(0) + number;
    auto found = choices.values(model, given);
    if (!found) return error_in(fmt::format("--calib, sample {}", number), found.error());
    return std::move(found->values);
  }

  // From here on weights lie beside a model: an ONNX file holds 2 GiB.
  bool is_apart() const { return apart_ || float_bytes_ > int64_t{3} << 29; }
  // Compiled as it is with the changes; it lies beside the output meanwhile.
  Result<EditedModel> compiled(const import::OnnxEdit& model) const {
    return compile_edited(model, open_, extents_, out_.target() + ".part.onnx", is_apart());
  }

  // The values whose ranges are wanted.
  std::vector<std::string> watched() const {
    std::set<std::string> names;
    if (is_int4()) return {};
    for (const Layer& layer : layers_) {
      if (!layer.input.empty()) names.insert(layer.input);
      if (!layer.output.empty()) names.insert(layer.output);
    }
    return {names.begin(), names.end()};
  }

  int64_t held_out() const { return std::clamp<int64_t>(samples_.count() / 4, 1, kMostHeldOut); }

  // Runs the float model over the set: ranges, and the outputs of the samples that are held out.
  Status collect(import::OnnxEdit* model) {
    model->clear();
    for (const auto& [name, value] : plan_.values) model->set(name, value);
    const std::vector<std::string> outputs = model->outputs();
    std::vector<std::pair<std::string, size_t>> where;
    size_t next = outputs.size();
    for (const std::string& name : watched()) {
      const auto output = std::find(outputs.begin(), outputs.end(), name);
      if (output == outputs.end()) model->add_output(name);
      where.emplace_back(
          name, output == outputs.end() ? next++ : static_cast<size_t>(output - outputs.begin()));
    }
    HEDDLE_ASSIGN_OR_RETURN(const EditedModel program, compiled(*model));
    const std::string identity = identity_with(program);
    const int64_t first = load_statistics(identity);
    for (int64_t s = 0; s < samples_.count(); ++s) {
      if (Interrupt::asked()) {
        save_statistics(identity, s);
        return tl::unexpected<Error>(
            Error{ErrorKind::cancelled, "stopped after " + std::to_string(s) + " samples"});
      }
      const bool held = s >= samples_.count() - held_out();
      if (s < first && !held) continue;
      progress_.show(fmt::format("{} calibrating", Progress::bar(s, samples_.count())));
      HEDDLE_ASSIGN_OR_RETURN(std::vector<Literal> values, inputs(program.model.get(), s));
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<Literal> results,
                              run_once(program.program.get(), values));
      if (s >= first)
        for (const auto& [name, place] : where)
          seen_.add(name, results[place], convolved_.contains(name));
      if (held)
        expected_.emplace_back(results.begin(),
                               results.begin() + static_cast<std::ptrdiff_t>(outputs.size()));
    }
    save_statistics(identity, samples_.count());
    return {};
  }

  std::vector<std::vector<double>> means() const {
    std::vector<std::vector<double>> all;
    for (const Layer& layer : layers_) all.push_back(seen_.means(layer.input));
    return all;
  }

  void choose_ranges() {
    const std::map<std::string, quantize::Method> methods = {
        {"mse", quantize::Method::mse},
        {"minmax", quantize::Method::minmax},
        {"percentile", quantize::Method::percentile},
        {"kl", quantize::Method::kl}};
    for (const auto& [name, seen] : seen_.values()) {
      if (seen.histogram.count() == 0) continue;
      const quantize::Range range =
          seen.histogram.range(methods.at(method_), !asymmetric_, percentile_.value_or(99.999));
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

  double activation_sqnr(const Layer& layer) const {
    const auto range = ranges_.find(layer.input);
    if (range == ranges_.end()) return 1e9;
    const Histogram& histogram = seen_.values().at(layer.input).histogram;
    return quantize::decibels(histogram.power(), histogram.error(range->second));
  }

  Result<std::vector<quantize::Stored>> rewritten(import::OnnxEdit* model) const {
    model->clear();
    return is_int4() ? quantize::rewrite_int4(model, layers_, plan_, block_.value_or(32))
                     : quantize::rewrite_int8(model, layers_, plan_);
  }

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

  // Rewrites and checks; where the outputs are too far off, the worst layers stay float. The model
  // is then as it is to be written.
  Result<bool> search(import::OnnxEdit* model) {
    struct {
      std::vector<bool> chosen;
      size_t size = 0;
      Agreement agreement;
    } first;
    for (int attempt = 0;; ++attempt) {
      HEDDLE_ASSIGN_OR_RETURN(stored_, rewritten(model));
      HEDDLE_ASSIGN_OR_RETURN(const EditedModel program, compiled(*model));
      size_ = program.bytes;
      agreement_ = Agreement();
      for (int64_t s = 0; s < held_out(); ++s) {
        if (Interrupt::asked())
          return tl::unexpected<Error>(Error{ErrorKind::cancelled, "stopped while checking"});
        progress_.show(fmt::format("{} checking", Progress::bar(s, held_out())));
        HEDDLE_ASSIGN_OR_RETURN(std::vector<Literal> values,
                                inputs(program.model.get(), samples_.count() - held_out() + s));
        HEDDLE_ASSIGN_OR_RETURN(const std::vector<Literal> results,
                                run_once(program.program.get(), values));
        agreement_.add(results, expected_[static_cast<size_t>(s)]);
      }
      if (agreement_.cosine() >= least_cosine()) return true;
      if (attempt == 0) first = {plan_.chosen, size_, agreement_};
      if (attempt < kMostReverts && revert_worst()) continue;
      notes_.push_back(fmt::format(
          "with {} layers less the outputs would be no nearer than cosine {:.5f}: all "
          "are quantised",
          std::count(plan_.chosen.begin(), plan_.chosen.end(), false), agreement_.cosine()));
      plan_.chosen = first.chosen;
      HEDDLE_ASSIGN_OR_RETURN(stored_, rewritten(model));
      size_ = first.size;
      agreement_ = first.agreement;
      return false;
    }
  }

  double worth(size_t i) const { return std::min(stored_[i].sqnr, activation_sqnr(layers_[i])); }

  bool revert_worst() {
    std::vector<size_t> left;
    for (size_t i = 0; i < layers_.size(); ++i)
      if (plan_.chosen[i]) left.push_back(i);
    std::sort(left.begin(), left.end(), [&](size_t a, size_t b) { return worth(a) < worth(b); });
    const size_t some = std::max<size_t>(1, layers_.size() / 16);
    for (size_t n = 0; n < std::min(some, left.size()); ++n) plan_.chosen[left[n]] = false;
    return left.size() > some;
  }

  // ---- statistics in a file ----
  // Of the values that are seen: the model as it runs, and its samples.
  std::string identity_with(const EditedModel& program) const {
    return fmt::format("heddle.statistics 1 {:016x} {} {:016x} {}", program.hash, samples_.count(),
                       hash64(samples_.identity()), seed_.value_or(0));
  }
  // The number of samples that it has seen; 0: none of it can be used.
  int64_t load_statistics(const std::string& identity) {
    if (!statistics_.given()) return 0;
    const int64_t samples = seen_.load(statistics_.path, identity);
    if (samples > 0)
      notes_.push_back(
          fmt::format("{} samples were seen before, by {}", samples, statistics_.path));
    return samples;
  }
  void save_statistics(const std::string& identity, int64_t samples) {
    if (!statistics_.given()) return;
    if (const Status written = statistics_.write(seen_.text(identity, samples)); !written)
      notes_.push_back(written.error().message);
  }

  // ---- what is told ----
  std::string state_of(size_t i) const {
    if (plan_.chosen[i]) return layers_[i].kind == Kind::table || !is_int4() ? "int8" : "int4";
    const auto why = why_float_.find(i);
    return why == why_float_.end() ? "float: its error is among the largest"
                                   : fmt::format("float: {}", why->second);
  }

  void print(bool near) const {
    fmt::print("{}: {} layers, {} samples, {:.1f} s\n", open_.model, layers_.size(),
               samples_.count(), seconds_);
    for (const std::string& note : notes_) fmt::print("note: {}\n", note);
    fmt::print("{:>10} {:>10} {:>9} {:>9}  {:10} {}\n", "bytes", "before", "weights", "input", "",
               "");
    for (size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      const double input = activation_sqnr(layer);
      fmt::print("{:>10} {:>10} {:>9} {:>9}  {:10} {} ({})\n",
                 bytes_text(plan_.chosen[i] ? stored_[i].bytes : 4 * layer.weight_elems),
                 bytes_text(4 * layer.weight_elems),
                 plan_.chosen[i] ? fmt::format("{:.1f} dB", stored_[i].sqnr) : "-",
                 plan_.chosen[i] && input < 1e8 ? fmt::format("{:.1f} dB", input) : "-",
                 layer.op_type, layer.name, state_of(i));
    }
    const auto quantized = std::count(plan_.chosen.begin(), plan_.chosen.end(), true);
    fmt::print("{} of {} layers quantised; {} pairs equalised, {} biases corrected\n", quantized,
               layers_.size(), equalized_, corrected_);
    fmt::print("{}: {}, {:.3f} of the {} of weights before\n", out_.path,
               bytes_text(static_cast<int64_t>(size_)),
               static_cast<double>(size_) / static_cast<double>(float_bytes_),
               bytes_text(float_bytes_));
    fmt::print("on {} samples that are held out: {}\n", held_out(), to_string(agreement_));
    fmt::print(
        "{}\n",
        near ? "pass" : fmt::format("FAIL: the cosine is less than {} (--cosine)", least_cosine()));
  }

  ordered_json json(bool near) const {
    ordered_json result = {{"schema", 1},
                           {"model", open_.model},
                           {"output", out_.path},
                           {"weights", weights_},
                           {"method", method_},
                           {"symmetric", !asymmetric_},
                           {"samples", samples_.count()},
                           {"random", samples_.is_random()},
                           {"held_out", held_out()},
                           {"seconds", seconds_},
                           {"bytes", size_},
                           {"float_bytes", float_bytes_},
                           {"equalised_pairs", equalized_},
                           {"corrected_biases", corrected_},
                           {"agreement", to_json(agreement_)},
                           {"pass", near},
                           {"notes", notes_}};
    for (size_t i = 0; i < layers_.size(); ++i) {
      ordered_json layer = {{"name", layers_[i].name},
                            {"op", layers_[i].op_type},
                            {"type", plan_.chosen[i] ? state_of(i) : "f32"},
                            {"float_bytes", 4 * layers_[i].weight_elems}};
      if (plan_.chosen[i]) {
        layer["bytes"] = stored_[i].bytes;
        layer["weights_sqnr_db"] = stored_[i].sqnr;
        if (const double input = activation_sqnr(layers_[i]); input < 1e8)
          layer["input_sqnr_db"] = input;
        if (const auto range = ranges_.find(layers_[i].input); range != ranges_.end())
          layer["input_range"] = {range->second.low, range->second.high};
      } else {
        layer["why"] = state_of(i);
      }
      result["layers"].push_back(std::move(layer));
    }
    return result;
  }

  OpenChoices open_;
  OutputFile out_, statistics_;
  std::string weights_ = "int8", calib_, method_ = "mse";
  std::optional<double> percentile_, cosine_;
  std::optional<int64_t> block_, seed_;
  bool asymmetric_ = false, unsigned_ = false, float_outputs_ = false, plain_ = false,
       apart_ = false;
  std::vector<std::string> keep_;
  JsonChoice json_;

  std::vector<Layer> layers_;
  quantize::Plan plan_;
  std::map<size_t, const char*> why_float_;  // layers that were never to be quantised
  Samples samples_;
  tensor::NamedLiterals extents_;  // values whose shapes bind dimensions
  ValueStatistics seen_;
  std::set<std::string> convolved_;
  std::map<std::string, quantize::Range> ranges_;
  std::vector<std::vector<Literal>> expected_;
  std::vector<quantize::Stored> stored_;
  size_t size_ = 0;  // of all that is written
  Agreement agreement_;
  std::vector<std::string> notes_;
  int64_t equalized_ = 0, corrected_ = 0, float_bytes_ = 0;
  double seconds_ = 0;
  Progress progress_;
};

}  // namespace

std::unique_ptr<Command> make_quantize() { return std::make_unique<Quantize>(); }

}  // namespace heddle::tools
