#include <algorithm>
#include <cstring>

#include "serve.h"

namespace serve {

struct Batch {
  Jobs jobs;
  heddle_context* context = nullptr;  // while it runs
  size_t wanted = 0;                  // jobs whose clients still wait
  bool cancelled = false;
  void cancel() {
    cancelled = true;
    heddle_context_cancel(context);
  }
};

// Copies rows between arrays that differ in how many rows they have, and how long they are along
// `axis`: what is longer in `to` is filled with `pad`, what is longer in `from` is left out.
static void copy_rows(const Tensor& from, int64_t from_row, Tensor& to, int64_t to_row,
                      int64_t rows, size_t axis, std::string_view pad) {
  int64_t pieces = 1;  // of a row
  for (size_t d = 1; d < axis; ++d) pieces *= from.dims[d];
  const size_t got = from.data.size() / static_cast<size_t>(from.dims[0] * pieces);
  const size_t wanted = to.data.size() / static_cast<size_t>(to.dims[0] * pieces);
  const char* source = from.data.data() + got * static_cast<size_t>(from_row * pieces);
  char* target = to.data.data() + wanted * static_cast<size_t>(to_row * pieces);
  for (int64_t p = 0; p < rows * pieces; ++p, source += got, target += wanted) {
    std::memcpy(target, source, std::min(got, wanted));
    for (size_t at = got; at < wanted; at += pad.size())
      std::memcpy(target + at, pad.data(), pad.size());
  }
}

// Where rows are cut or padded; 1, all of a row: nowhere.
static size_t axis_of(const Port& port, const std::string& padded) {
  const size_t axis = port.axis_of(padded);
  return padded.empty() || axis == port.dims.size() ? 1 : axis;
}

// The inputs of one run of `rows` rows; rows that nobody asked for repeat the first one.
static std::vector<Tensor> join(const Model& model, const Jobs& jobs, int64_t rows,
                                int64_t length) {
  std::vector<Tensor> joined;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const size_t axis = axis_of(model.inputs[i], model.config.padded);
    std::vector<int64_t> dims = jobs[0]->inputs[i].dims;
    dims[0] = rows;
    if (!model.pads[i].empty()) dims[axis] = length;
    Tensor tensor = zeros(model.inputs[i], dims);
    int64_t row = 0;
    for (const JobPointer& job : jobs) {
      copy_rows(job->inputs[i], 0, tensor, row, job->rows, axis, model.pads[i]);
      row += job->rows;
    }
    for (; row < rows; ++row) copy_rows(tensor, 0, tensor, row, 1, 1, "");
    joined.push_back(std::move(tensor));
  }
  return joined;
}

// What one request gets of the outputs of a run of these rows and this length.
static std::vector<Tensor> part_of(const std::vector<Tensor>& out, const Job& job, int64_t row,
                                   int64_t rows, int64_t length) {
  std::vector<Tensor> mine;
  for (size_t o = 0; o < out.size(); ++o) {
    const Port& port = job.model->outputs[o];
    std::vector<int64_t> dims = out[o].dims;
    if (dims.empty() || dims[0] != rows)
      throw Refusal(500, "output '{}' does not begin with the batch dimension", port.name);
    const size_t axis = axis_of(port, job.model->config.padded);
    dims[0] = job.rows;
    if (port.axis_of(job.model->config.padded) == axis)
      dims[axis] = dims[axis] / length * job.length;
    Tensor tensor = zeros(port, dims);
    copy_rows(out[o], row, tensor, 0, job.rows, axis, "");
    mine.push_back(std::move(tensor));
  }
  return mine;
}

Scheduler::Scheduler(const Limits& limits, Metrics& metrics) : limits_(limits), metrics_(metrics) {
  for (int r = 0; r < limits.runners; ++r)
    runners_.emplace_back([this, r] { work(static_cast<size_t>(r)); });
}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (Batch* batch : running_) batch->cancel();
    for (const JobPointer& job : queue_)
      job->outputs.set_exception(std::make_exception_ptr(Refusal(503, "the server stops")));
  }
  changed_.notify_all();
  for (std::thread& runner : runners_) runner.join();
}

JobPointer job_of(const std::shared_ptr<Model>& model, Request request) {
  const auto job = std::make_shared<Job>();
  job->model = model;
  job->inputs = std::move(request.inputs);
  job->others = std::move(request.extents);
  if (const auto rows = job->others.extract(model->config.batch)) job->rows = rows.mapped();
  if (const auto all = job->others.extract(model->config.padded)) job->length = all.mapped();
  return job;
}

void Scheduler::submit(const Jobs& jobs) {
  const std::lock_guard lock(mutex_);
  if (queue_.size() + jobs.size() > limits_.queued)
    throw Refusal(503, "{} requests are waiting; try again later", queue_.size());
  for (const JobPointer& job : jobs) {
    queue_.push_back(job);
    ++pending_[job->model.get()];
    metrics_.add("heddle_accepted_total", label_of(job->model->name));
  }
  metrics_.set("heddle_queue_requests", static_cast<double>(queue_.size()));
  changed_.notify_all();
}

void Scheduler::abandon(const JobPointer& job) {
  const std::lock_guard lock(mutex_);
  metrics_.add("heddle_abandoned_total", label_of(job->model->name));
  if (job->batch != nullptr && --job->batch->wanted == 0) job->batch->cancel();
  if (std::erase(queue_, job) > 0 && --pending_[job->model.get()] == 0)
    pending_.erase(job->model.get());
  metrics_.set("heddle_queue_requests", static_cast<double>(queue_.size()));
}

// The oldest request, and those that are run with it for the least padding: of nearly its length.
Jobs Scheduler::gather(const JobPointer& first) const {
  const Config& config = first->model->config;
  Jobs near, jobs{first};
  for (const JobPointer& job : queue_)
    if (!config.batch.empty() && job != first && job->model == first->model &&
        job->others == first->others)
      near.push_back(job);
  const auto distance = [&](const JobPointer& job) {
    return std::abs(job->length - first->length);
  };
  std::stable_sort(near.begin(), near.end(),
                   [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  int64_t rows = first->rows, longest = first->length, elements = rows * longest;
  for (const JobPointer& job : near) {
    const int64_t more = rows + job->rows, most = std::max(longest, job->length);
    const int64_t sum = elements + job->rows * job->length;
    const double padded = static_cast<double>(more * most) / static_cast<double>(sum);
    if (more > config.most_rows || padded > 1 + config.most_padding) continue;
    if (!config.padded.empty() && more * most > config.most_elements) continue;
    rows = more, longest = most, elements = sum;
    jobs.push_back(job);
  }
  // Where programs are for certain numbers of rows, the others wait for the next run.
  const int64_t most = first->model->rows_at_most(rows);
  for (; jobs.size() > 1 && rows > most; jobs.pop_back()) rows -= jobs.back()->rows;
  return jobs;
}

Jobs Scheduler::next(Clock::time_point now, Clock::time_point* when) {
  std::set<const Model*> seen;
  for (const JobPointer& job : queue_) {
    const Config& config = job->model->config;
    if (!seen.insert(job->model.get()).second) continue;
    Jobs jobs = gather(job);
    int64_t rows = 0;
    for (const JobPointer& one : jobs) rows += one->rows;
    const std::chrono::duration<double, std::milli> delay(config.delay_ms);
    const auto due = job->arrived + std::chrono::duration_cast<Clock::duration>(delay);
    // It waits for others that may come: not where there is nobody else.
    if (now >= due || rows >= config.most_rows || config.batch.empty() ||
        pending_[job->model.get()] == 1)
      return jobs;
    *when = std::min(*when, due);
  }
  return {};
}

void Scheduler::work(size_t runner) {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    auto when = Clock::now() + std::chrono::hours(1);
    const Jobs jobs = next(Clock::now(), &when);
    if (jobs.empty()) {
      changed_.wait_until(lock, when);
      continue;
    }
    for (const JobPointer& job : jobs) queue_.remove(job);
    metrics_.set("heddle_queue_requests", static_cast<double>(queue_.size()));
    lock.unlock();
    run(runner, jobs);
    lock.lock();
    for (const JobPointer& job : jobs)
      if (--pending_[job->model.get()] == 0) pending_.erase(job->model.get());
  }
}

void Scheduler::set_context(Batch& batch, heddle_context* context) {
  const std::lock_guard lock(mutex_);
  batch.context = context;
  for (const JobPointer& job : batch.jobs) job->batch = context != nullptr ? &batch : nullptr;
  if (context == nullptr) {
    running_.erase(&batch);
  } else {
    running_.insert(&batch);
    if (stop_) batch.cancel();
  }
}

std::vector<Tensor> Scheduler::run_batch(size_t runner, Batch& batch, int64_t rows,
                                         int64_t length) {
  Model& model = *batch.jobs[0]->model;
  std::vector<Tensor> in, out;
  if (!model.config.batch.empty()) in = join(model, batch.jobs, rows, length);
  ContextHandle& context = model.context(runner, rows);
  std::exception_ptr failed;
  set_context(batch, context.get());
  try {
    out = model.run(context.get(), in.empty() ? batch.jobs[0]->inputs : in);
  } catch (const std::exception&) {
    failed = std::current_exception();
  }
  set_context(batch, nullptr);
  // Where its run had ended already, the next one would be cancelled.
  if (batch.cancelled) context.reset();
  if (failed) std::rethrow_exception(failed);
  return out;
}

void Scheduler::run(size_t runner, const Jobs& jobs) {
  const Model& model = *jobs[0]->model;
  Batch batch{jobs, nullptr, jobs.size()};
  int64_t rows = 0, length = 0, row = 0;
  for (const JobPointer& job : jobs) rows += job->rows, length = std::max(length, job->length);
  const int64_t all = model.rows_at_least(rows);
  const auto begin = Clock::now();
  std::vector<Tensor> out;
  std::exception_ptr failed;
  try {
    out = run_batch(runner, batch, all, length);
  } catch (const std::exception&) {
    failed = std::current_exception();
  }
  const std::string label = label_of(model.name);
  metrics_.add("heddle_rows_total", label, static_cast<double>(rows));
  metrics_.observe("heddle_run_seconds", label, seconds(Clock::now() - begin));
  for (const JobPointer& job : jobs) {
    metrics_.observe("heddle_queue_seconds", label, seconds(begin - job->arrived));
    try {
      if (failed && jobs.size() > 1 && !batch.cancelled) {
        run(runner, {job});  // each alone: only those that are at fault fail
      } else if (failed) {
        std::rethrow_exception(failed);
      } else {
        const bool is_joined = !model.config.batch.empty();
        job->outputs.set_value(is_joined ? part_of(out, *job, row, all, length) : std::move(out));
      }
    } catch (const std::exception&) {
      job->outputs.set_exception(std::current_exception());
    }
    row += job->rows;
  }
}

}  // namespace serve
