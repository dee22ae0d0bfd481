// The parts of the server, from the bottom up. Each is in the .cc file of its name.
#pragma once

#include <fmt/format.h>
#include <heddle/heddle.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace serve {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

// A request, or a model, that is not served: HTTP's status, and the reason for the client or the
// log.
struct Refusal : std::runtime_error {
  template <class... Args>
  Refusal(int code, fmt::format_string<Args...> reason, Args&&... args)
      : std::runtime_error(fmt::format(reason, std::forward<Args>(args)...)), status(code) {}
  int status;
};

// ---- metrics.cc: what Prometheus reads. Thread-safe ----
class Metrics {
 public:
  void add(const std::string& name, const std::string& labels, double by = 1);
  void set(const std::string& name, double value);
  void observe(const std::string& name, const std::string& labels, double value);  // a histogram
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, double>> families_;  // by name, by series
};
inline std::string label_of(const std::string& model) { return fmt::format("model=\"{}\"", model); }
inline double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// ---- model.cc: a model that is compiled for all extents that requests may have ----
struct Tensor {
  std::vector<int64_t> dims;
  std::vector<char> data;  // dense, row-major
};
struct Type {
  heddle_type type;
  const char* name;  // KServe's
  int64_t bytes;     // per element
};
struct Dim {
  int64_t extent = 0;  // where it is fixed
  std::string name;
  int64_t most = 0;  // 0: it is fixed; else the largest extent of a request
};
struct Port {
  std::string name;
  const Type* type = nullptr;
  std::vector<Dim> dims;
  // Where the dynamic dimension of that name is; dims.size(): nowhere.
  size_t axis_of(const std::string& dim) const;
};
Tensor zeros(const Port& port, std::vector<int64_t> dims);

struct Config {  // config.json: docs/serving.md
  std::string batch, padded;
  std::map<std::string, json> pad;  // by input
  std::map<std::string, int64_t> bounds, dims;
  int64_t most_rows = 16, most_elements = 64;  // of a run; along the padded dimension, too
  double delay_ms = 2, most_padding = 0.1;
  void read(const std::filesystem::path& file);  // if it is there
};
struct Limits {
  int port = 8000, runners = 2, threads = 0;
  size_t queued = 1024, connections = 256, body_bytes = 64 << 20, all_bytes = 1 << 30;
  double request_seconds = 20, idle_seconds = 60, drain_seconds = 30, poll_seconds = 1;
};

template <auto function>
struct Free {
  void operator()(auto* handle) const { function(handle); }
};
using ModelHandle = std::unique_ptr<heddle_model, Free<heddle_model_free>>;
using ProgramHandle = std::unique_ptr<heddle_program, Free<heddle_program_free>>;
using ContextHandle = std::unique_ptr<heddle_context, Free<heddle_context_free>>;

class Model {
 public:
  // Compiles the file, which is not to change, and runs every program once. `stop` ends that.
  Model(std::string name, const std::filesystem::path& file, Config config, const Limits& limits,
        std::atomic<bool>& stop);
  const std::string name;
  Config config;
  const Limits& limits;
  std::vector<Port> inputs, outputs;
  std::vector<std::string> pads;  // by input: the element that pads it; empty: it is not padded
  // Programs are for any number of rows, or for some: the next one that is larger, or smaller.
  int64_t rows_at_least(int64_t rows) const;
  int64_t rows_at_most(int64_t rows) const;
  // Runner's own, for that many rows.
  ContextHandle& context(size_t runner, int64_t rows);
  std::vector<Tensor> run(heddle_context* context, const std::vector<Tensor>& in) const;

 private:
  struct Variant {
    int64_t rows;  // 0: any
    ProgramHandle program;
    std::vector<ContextHandle> contexts;  // by runner
  };
  void find_shapes(heddle_model* model);
  Port port_of(heddle_model* model, bool input, int64_t number) const;
  void compile(const std::filesystem::path& file, int64_t rows, std::atomic<bool>& stop);
  void check_batch();

  bool is_program_ = false;
  bool is_late_ = false;           // shapes are told before each run: heddle_shapes.h
  std::set<std::string> free_;     // dynamic dimensions
  std::vector<int64_t> sizes_{0};  // rows of the programs, ascending; 0: any
  std::vector<Variant> variants_;
};

// ---- wire.cc: bodies of requests and replies, as KServe's v2 protocol has them ----
struct Request {
  json id;  // null: none
  std::vector<Tensor> inputs;
  std::map<std::string, int64_t> extents;        // of dynamic dimensions
  std::vector<std::pair<size_t, bool>> outputs;  // which are wanted; behind the JSON, as bytes
};
// Both: tensors lie in the JSON, or behind its `json_bytes` (in a reply: 0 where there are none).
Request decode(const Model& model, std::string_view body, size_t json_bytes);
std::string encode(const Model& model, const Request& request, const std::vector<Tensor>& outputs,
                   size_t* json_bytes);
json metadata(const Model& model);
void append(const json& numbers, const Type& type, Tensor* to);  // also of nested arrays
std::string text(const json& value);                             // in one line

// ---- scheduler.cc: one queue and one pool of threads for all models ----
struct Batch;
struct Job {
  std::shared_ptr<Model> model;
  std::vector<Tensor> inputs;
  std::map<std::string, int64_t> others;  // extents that requests of one run have in common
  int64_t rows = 1, length = 1;           // of the batch and of the padded dimension
  std::promise<std::vector<Tensor>> outputs;
  Clock::time_point arrived = Clock::now();
  Batch* batch = nullptr;  // that is running it
};
using JobPointer = std::shared_ptr<Job>;
using Jobs = std::vector<JobPointer>;
JobPointer job_of(const std::shared_ptr<Model>& model, Request request);

class Scheduler {
 public:
  Scheduler(const Limits& limits, Metrics& metrics);
  ~Scheduler();  // cancels runs; what waits is refused
  // Each job's `outputs` then has the outputs, or a Refusal. Refusal: too many wait.
  void submit(const Jobs& jobs);
  void abandon(const JobPointer& job);  // a run that nobody waits for any more is cancelled

 private:
  void work(size_t runner);
  Jobs next(Clock::time_point now, Clock::time_point* when);  // none: look again at *when
  Jobs gather(const JobPointer& first) const;
  void run(size_t runner, const Jobs& jobs);
  std::vector<Tensor> run_batch(size_t runner, Batch& batch, int64_t rows, int64_t length);
  void set_context(Batch& batch, heddle_context* context);

  const Limits& limits_;
  Metrics& metrics_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<JobPointer> queue_;          // the oldest first
  std::map<const Model*, int> pending_;  // requests that wait or run
  std::set<Batch*> running_;
  bool stop_ = false;
  std::vector<std::thread> runners_;
};

// ---- repository.cc: a folder of models, watched ----
class Repository {
 public:
  Repository(std::filesystem::path folder, Config config, const Limits& limits, Metrics& metrics,
             std::atomic<bool>& stop);
  ~Repository();
  void look();  // loads what is new, or changed and at rest, from a copy; by one thread
  std::shared_ptr<Model> get(const std::string& name) const;
  bool is_ready() const { return ready_; }  // all that was there at the start is loaded, or failed
  json index() const;

 private:
  struct Entry {
    std::string seen, loaded;  // state of its files: at the last look; when they were loaded
    std::shared_ptr<Model> model;
    std::string error;
  };
  std::shared_ptr<Model> load(const std::string& name, const std::filesystem::path& from);

  const std::filesystem::path folder_;
  std::filesystem::path copies_;
  const Config config_;
  const Limits& limits_;
  Metrics& metrics_;
  std::atomic<bool>& stop_;
  std::atomic<bool> ready_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  int loads_ = 0;
};

}  // namespace serve
