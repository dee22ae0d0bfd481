#include "extent_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "report.h"
namespace heddle::tools {
namespace {

using tensor::Literal;

// The first elements, in each dimension, of a larger array.
void cut(const Literal& from, Literal* to) {
  const std::vector<int64_t> x = from.shape().extents(), y = to->shape().extents();
  const auto bytes = static_cast<size_t>(tensor::type_bytes(from.type()));
  const auto* source = static_cast<const char*>(from.data());
  auto* target = static_cast<char*>(to->mutable_data());
  std::vector<int64_t> at(y.size(), 0);
  for (int64_t i = 0; i < to->elems(); ++i) {
    int64_t place = 0;
    for (size_t d = 0; d < y.size(); ++d) place = place * x[d] + at[d];
    std::memcpy(target + static_cast<size_t>(i) * bytes,
                source + static_cast<size_t>(place) * bytes, bytes);
    for (size_t d = y.size(); d-- > 0 && ++at[d] == y[d];) at[d] = 0;
  }
}

}  // namespace

Result<std::optional<ExtentRange>> find_range(const std::vector<std::string>& dims) {
  std::optional<ExtentRange> found;
  for (const std::string& text : dims) {
    const size_t dots = text.find(".."), equals = text.rfind('=', dots);
    if (dots == std::string::npos || equals == std::string::npos) continue;
    const size_t colon = text.find(':', dots);
    const auto part = [&](size_t begin, size_t end) {
      return parse_number(std::string_view(text).substr(begin, end - begin));
    };
    const auto first = part(equals + 1, dots), last = part(dots + 2, std::min(colon, text.size())),
               step = colon == std::string::npos ? std::optional<int64_t>(1)
                                                 : part(colon + 1, text.size());
    if (equals == 0 || !first || !last || !step || *first < 1 || *last < *first || *step < 1)
      return user_error(
          "--dim {}: wanted NAME=FIRST..LAST or NAME=FIRST..LAST:STEP, such as length=1..512",
          text);
    if (found)
      return user_error("--dim {}: {} has a range already; wanted one, give the other a number",
                        text, found->name);
    found = ExtentRange{text.substr(0, equals), *first, *last, *step};
  }
  return found;
}

tensor::Shape ExtentSweep::Form::at(const ExtentRange& range, int64_t extent) const {
  std::vector<int64_t> dims = last;
  for (size_t d = 0; d < dims.size(); ++d) dims[d] -= factor[d] * (range.last - extent);
  return tensor::Shape::array(type, dims);
}

ExtentSweep::Form ExtentSweep::form_of(const heddle_port& at_last, const heddle_port& at_other,
                                       int64_t apart) {
  Form form;
  form.type = static_cast<tensor::Type>(at_last.type);
  for (int32_t d = 0; d < at_last.rank; ++d) {
    form.last.push_back(at_last.dims[d]);
    form.factor.push_back((at_last.dims[d] - at_other.dims[d]) / apart);
  }
  return form;
}

Result<std::unique_ptr<ExtentSweep>> ExtentSweep::begin(const OpenChoices& open,
                                                        const InputChoices& inputs,
                                                        const CompileChoices& compile,
                                                        const ExtentRange& range) {
  if (!inputs.file.empty() || !inputs.specs.empty() || !open.fixed.empty())
    return user_error(
        "--dim {}={}..{}: values have one extent; without --inputs, --input and --fix they are "
        "random",
        range.name, range.first, range.last);
  const int64_t bound = std::max<int64_t>(range.last, 4);
  const auto open_at = [&](int64_t extent) {
    OpenChoices choices = open;
    for (std::string& text : choices.dims)
      if (text.find("..") != std::string::npos)
        text = fmt::format("{}={}<={}", range.name, extent, bound);
    return choices.open();
  };
  auto sweep = std::make_unique<ExtentSweep>();
  sweep->range_ = range;
  HEDDLE_ASSIGN_OR_RETURN(const ModelHandle model, open_at(range.last));
  const int64_t apart = range.last > 1 ? 1 : -1;
  HEDDLE_ASSIGN_OR_RETURN(const ModelHandle other, open_at(range.last - apart));
  HEDDLE_ASSIGN_OR_RETURN(sweep->inputs_, inputs.values(model.get(), {}));
  sweep->seed_ = inputs.seed_or_default();
  sweep->unbound_ = unbound_of(model.get());
  for (int64_t i = 0; input_of(model.get(), i).name != nullptr; ++i)
    sweep->input_forms_.push_back(
        form_of(input_of(model.get(), i), input_of(other.get(), i), apart));
  for (int64_t i = 0; output_of(model.get(), i).name != nullptr; ++i) {
    sweep->output_forms_.push_back(
        form_of(output_of(model.get(), i), output_of(other.get(), i), apart));
    sweep->output_names_.emplace_back(output_of(model.get(), i).name);
  }
  HEDDLE_ASSIGN_OR_RETURN(sweep->program_, compile.compile(model.get(), true));
  heddle_context* created = nullptr;
  HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_create(sweep->program_.get(), &created)));
  sweep->context_.reset(created);
  return sweep;
}

Status ExtentSweep::set_extent(int64_t extent) {
  HEDDLE_RETURN_IF_ERROR(
      to_status(heddle_context_set_dim(context_.get(), range_.name.c_str(), extent)));
  bound_.clear();
  outputs_.clear();
  for (size_t i = 0; i < input_forms_.size(); ++i) {
    bound_.emplace_back(input_forms_[i].at(range_, extent));
    cut(inputs_.values[i], &bound_.back());
  }
  for (const Form& form : output_forms_) outputs_.emplace_back(form.at(range_, extent));
  return bind(context_.get(), bound_, outputs_);
}

Result<double> ExtentSweep::timed_run() {
  const auto begin = std::chrono::steady_clock::now();
  HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(context_.get())));
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

void ExtentSweep::show_progress(int64_t extent) {
  progress_.show(fmt::format("{}/{} {}={}", (extent - range_.first) / range_.step + 1, shapes(),
                             range_.name, extent));
}

int64_t ExtentSweep::shapes() const { return (range_.last - range_.first) / range_.step + 1; }

std::string ExtentSweep::head_text(const std::string& model) const {
  return to_string(
      Head{model, where_text(info_of(program_.get())), unbound_, inputs_.all_random, seed_});
}

std::string ExtentSweep::counts_text() const {
  const int64_t compilations = info_of(program_.get()).compilations;
  return fmt::format("{} shape{}, {} compilation{}", shapes(), shapes() == 1 ? "" : "s",
                     compilations, compilations == 1 ? "" : "s");
}

nlohmann::ordered_json ExtentSweep::json(const std::string& model,
                                         nlohmann::ordered_json extents) const {
  const heddle_program_info info = info_of(program_.get());
  nlohmann::ordered_json json = json_head(model, info);
  json["bound_dimensions"] = to_json(unbound_);
  json["inputs"] = inputs_.description;
  json["notes"] = notes_of(program_.get());
  json["dimension"] = range_.name;
  json["shapes"] = shapes();
  json["compilations"] = info.compilations;
  json["extents"] = std::move(extents);
  return json;
}

}  // namespace heddle::tools
