#include "api/library_work.h"

#include <algorithm>

#include "library/library.h"

namespace heddle::api {
namespace {

class Work : public runtime::LibraryWork {
 public:
  Work(std::shared_ptr<library::Library> library, std::unique_ptr<library::Call> call)
      : library_(std::move(library)), call_(std::move(call)) {}
  int64_t tasks() const override { return call_->tasks(); }
  Status prepare(void* const* buffers) override { return call_->prepare(buffers); }
  Status run(void* const* buffers, int64_t begin, int64_t end) const override {
    return call_->run(buffers, begin, end);
  }

 private:
  std::shared_ptr<library::Library> library_;
  std::unique_ptr<library::Call> call_;
};

// Checks that the operation stays inside the arrays: a file may contain anything.
Status check_arrays(const program::LibraryCall& call, const library::Operation& operation) {
  const library::Spans spans = library::spans(operation);
  std::vector<std::pair<int64_t, const program::View*>> wanted = {{spans.a, &call.arguments[0]},
                                                                  {spans.b, &call.arguments[1]}};
  if (call.arguments.size() != (operation.bias ? 3u : 2u))
    return user_error("library {}: {} arrays for {}", call.library, call.arguments.size(),
                      call.operation);
  if (operation.bias) wanted.emplace_back(spans.bias, &call.arguments[2]);
  wanted.emplace_back(spans.c, &call.result);
  for (const auto& [elems, view] : wanted)
    if (elems > view->shape.elems())
      return user_error("library {}: {} elements where there are {}, for {}", call.library, elems,
                        view->shape.elems(), call.operation);
  return {};
}

}  // namespace

runtime::LibraryFunction library_function(const target::Target& target) {
  return [target](
             const program::LibraryCall& call) -> Result<std::shared_ptr<runtime::LibraryWork>> {
    HEDDLE_ASSIGN_OR_RETURN(const library::Operation operation,
                            library::parse_operation(call.operation));
    HEDDLE_RETURN_IF_ERROR(check_arrays(call, operation));
    const library::Opened opened = library::open(call.library, target);
    if (!opened.library)
      return user_error(
          "it needs the library {} (compiled with --library): {} ({}); install it (HEDDLE_ONEDNN "
          "names its file), or compile the model with --library=none",
          call.library, opened.decision.reason(), opened.decision.code());
    library::Fixed fixed;
    fixed.b = std::count(call.fixed.begin(), call.fixed.end(), 1) > 0;
    library::CallOrNot made = opened.library->make_call(operation, fixed, call.tasks);
    if (!made.call)
      return user_error("library {} {}: {} ({}); compile the model again here", call.library,
                        opened.library->facts().version, made.decision.reason(),
                        made.decision.code());
    return std::make_shared<Work>(opened.library, std::move(made.call));
  };
}

}  // namespace heddle::api
