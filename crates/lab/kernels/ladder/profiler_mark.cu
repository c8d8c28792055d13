// Does nothing: in a profiler's list of launches, a grid of k blocks says that rung number k comes next.
extern "C" __global__ void rung_mark() {}
