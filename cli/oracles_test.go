package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mirador/omis/service"
)

// oracle names the source of truth with which a service is compared on live processes, and the
// tests that compare.
type oracle struct{ truth, tests string }

// oracles has a row for each service that a Linux node supports.
var oracles = map[string]oracle{
	"node_attach":   {"the table of objects", "TestNodesLive"},
	"node_attach2":  {"uname", "TestNodesLive"},
	"node_detach":   {"the kernel's TracerPid; gdb on text and file", "TestNodesLive"},
	"node_get_info": {"uname, uptime, nproc, sysctl, /proc/cpuinfo, free, df, lsblk, ip, vmstat, who, ps, /proc/diskstats; loops of the test", "TestNodesLive TestSystem TestProcessors TestProcessorsAsTheKernelHasThem TestMemoryAndDisks TestNetworkLinks TestNetworkLinksAreThoseOfTheKernel TestBenchmarksArePlausible TestBenchmarksRunOnce TestLimitOfLogins TestLoad TestLogins TestPagingIsThatOfVmstat TestRatesFollowWhatHappens TestDiskTransfersAreThoseOfTheKernel TestDiskRates TestNFSTransfers TestPacketsAreThoseOfTheKernel TestNetworkRates"},

	"proc_create":           {"what the program writes; the kernel's program counter, the linker's entry by readelf; /proc/PID/cmdline", "TestCreateLive"},
	"proc_attach":           {"the kernel's TracerPid", "TestProcessDetachLive"},
	"proc_attach3":          {"the kernel's pid", "TestProcessInfoLive TestIdentify"},
	"proc_detach":           {"the kernel's TracerPid; the program's file", "TestProcessDetachLive TestAttachAndDetach"},
	"proc_send_signal":      {"the target's handler; its status of exit", "TestSignalsAndPrioritiesLive TestEndLive"},
	"proc_set_priority":     {"ps", "TestSignalsAndPrioritiesLive"},
	"proc_write_memory":     {"gdb; the target", "TestMemoryLive TestWriteMemory"},
	"proc_write_memory_bin": {"gdb; the target", "TestMemoryLive"},
	"proc_migrate":          {"the target's own work, which continues elsewhere", "TestMigrateByEngine"},
	"proc_checkpoint":       {"the target's own work, which continues from there", "TestCheckpoint TestCheckpointOfFamily"},
	"proc_restore":          {"the target's own work", "TestCheckpoint TestRestoreByEngine"},
	"proc_get_info":         {"ps, /proc/PID/status, io, stat; getrusage of the target", "TestProcessInfoLive TestInfoEqualsOwnReport"},
	"proc_read_memory":      {"the target", "TestMemoryLive"},
	"proc_read_memory_bin":  {"the target", "TestMemoryLive"},
	"proc_get_loader_info":  {"gdb's info files; program headers and /proc/PID/maps", "TestLoaderInfoLive"},

	"proc_has_terminated":       {"the target's status of exit and its use of resources, by wait4", "TestEndLive TestEnds"},
	"proc_has_been_stopped":     {"/proc/PID/task/TID/status", "TestStopsLive"},
	"proc_has_been_continued":   {"/proc/PID/task/TID/status", "TestStopsLive"},
	"proc_has_been_scheduled":   {"the kernel's count of switches", "TestSchedulingLive"},
	"proc_has_been_descheduled": {"the kernel's count of switches", "TestSchedulingLive"},
	"proc_will_be_migrated":     {"the order of the events, and the work that continues", "TestMigrateByEngine"},
	"proc_has_been_migrated":    {"the order of the events, and the work that continues", "TestMigrateByEngine"},

	"thread_detach":         {"the target's work, without events", "TestThreadDetachLive TestLetGo"},
	"thread_stop":           {"/proc/PID/task/TID/status; the CPU time", "TestStopsLive TestStop"},
	"thread_continue":       {"/proc/PID/task/TID/status; the CPU time", "TestStopsLive TestStop"},
	"thread_suspend":        {"/proc/PID/task/TID/status; the CPU time", "TestStopsLive TestSuspend"},
	"thread_resume":         {"/proc/PID/task/TID/status; the CPU time", "TestStopsLive TestSuspend"},
	"thread_send_signal":    {"the thread that the target's handler ran in", "TestSignalsAndPrioritiesLive"},
	"thread_set_priority":   {"ps", "TestSignalsAndPrioritiesLive"},
	"thread_write_int_regs": {"gdb; the target", "TestRegistersLive"},
	"thread_write_fp_regs":  {"gdb; the target", "TestRegistersLive"},
	"thread_goto":           {"the target; gdb", "TestGotoAndCallLive TestGoto"},
	"thread_call":           {"the target's count of calls; registers before and after", "TestGotoAndCallLive TestWriteRegisters"},
	"thread_get_info":       {"/proc/PID/task, nm, maps; getrusage of the target", "TestThreadInfoLive TestBirthsLive TestThreadInfoEqualsOwnReport TestThreadInfo"},
	"thread_get_backtrace":  {"eu-stack; gdb", "TestBacktraceLive TestBacktraceAgreesWithEuStack TestBacktraceAgreesWithGDB"},
	"thread_read_int_regs":  {"gdb", "TestRegistersLive TestRegistersAgreeWithGDB"},
	"thread_read_fp_regs":   {"gdb", "TestRegistersLive TestRegistersAgreeWithGDB"},

	"thread_creates_proc":         {"the target's pids", "TestEventsLive TestBirthsLive TestBirth"},
	"thread_creates_thread":       {"the target's tids", "TestEventsLive TestBirthsLive TestNewThreadIsKept"},
	"thread_has_terminated":       {"the target's count", "TestEventsLive TestThreadEvents"},
	"thread_received_signal":      {"the target's count", "TestEventsLive TestSignalEvents"},
	"thread_has_blocked":          {"the kernel's count of voluntary switches", "TestSchedulingLive TestScheduling"},
	"pa_thread_has_blocked_on_io": {"the target reads past all caches, or naps", "TestIOWait"},
	"thread_has_been_unblocked":   {"the kernel's count of voluntary switches", "TestSchedulingLive TestScheduling"},
	"thread_has_been_stopped":     {"/proc/PID/task/TID/status", "TestStopsLive TestStopEvents"},
	"thread_has_been_continued":   {"/proc/PID/task/TID/status", "TestStopsLive TestStopEvents"},
	"thread_has_been_scheduled":   {"the kernel's count of switches", "TestSchedulingLive TestScheduling"},
	"thread_has_been_descheduled": {"the kernel's count of switches", "TestSchedulingLive TestScheduling"},
	"thread_reached_addr":         {"the target's count", "TestEventsLive TestCounts"},
	"pa_thread_reached_addr_if":   {"the target's count of jumps taken", "TestBranches"},
	"thread_executed_insn":        {"gdb's steps", "TestStepsAgreeWithGDB"},
	"thread_executed_insn_call":   {"gdb's steps", "TestStepsAgreeWithGDB"},
	"thread_has_started_lib_call": {"the target's count", "TestEventsLive TestLibraryCalls"},
	"thread_has_ended_lib_call":   {"the results that the target got", "TestEventsLive TestLibraryCalls"},
	"thread_has_started_sys_call": {"strace", "TestSystemCallsAgreeWithStrace TestEventsLive"},
	"thread_has_ended_sys_call":   {"strace; the results that the target got", "TestSystemCallsAgreeWithStrace TestDecodesAsStraceDoes TestEventsLive"},

	"csr_enable":                 {"the target's count; TracerPid", "TestRequestsLive"},
	"csr_disable":                {"the target's count; TracerPid", "TestRequestsLive"},
	"csr_delete":                 {"the target's count", "TestRequestsLive TestEventsLive"},
	"user_event_create":          {"the target's results, passed on", "TestUserEventsLive"},
	"user_event_raise":           {"the target's results, passed on", "TestUserEventsLive"},
	"user_event_destroy":         {"the target's count", "TestUserEventsLive"},
	"user_event_has_been_raised": {"the target's results, passed on", "TestUserEventsLive"},
	"print":                      {"the request", "TestMonitorItselfLive"},
	"version":                    {"the specification", "TestMonitorItselfLive"},
	"extensions":                 {"the table of services", "TestMonitorItselfLive"},
	"services":                   {"the table of services, every row called", "TestMonitorItselfLive TestServicesSayHowOrWhy"},

	"pa_counter_create":      {"the target's count", "TestCountersLive"},
	"pa_counter_delete":      {"the table of objects", "TestCountersLive"},
	"pa_counter_reset":       {"the target's count", "TestCountersLive"},
	"pa_counter_add":         {"the target's count", "TestCountersLive TestPerformanceAnalysisLive"},
	"pa_counter_add_amount":  {"strace; the target's count of bytes", "TestLoads TestLoadsAgreeWithStrace"},
	"pa_counter_read":        {"the target's count", "TestCountersLive TestPerformanceAnalysisLive"},
	"pa_counter_sum":         {"the target's count", "TestCountersLive TestSumsOfCountersAndTimers"},
	"pa_timer_create":        {"the target's clock", "TestTimersLive"},
	"pa_timer_create2":       {"the target's clock", "TestTimersLive"},
	"pa_timer_create3":       {"the target's count and clock", "TestSampledTimersLive"},
	"pa_timer_create4":       {"the target's clock", "TestHistogramsLive"},
	"pa_timer_create5":       {"getrusage of the target's threads, and the bytes that they write", "TestCountsOfOtherThreads"},
	"pa_timer_histogram":     {"the target's clock", "TestHistogramsLive TestHistograms"},
	"pa_timer_percentiles":   {"the target's clock", "TestHistogramsLive TestHistograms"},
	"pa_timer_estimate":      {"the target's count and clock", "TestSampledTimersLive"},
	"pa_timer_delete":        {"the table of objects", "TestTimersLive"},
	"pa_timer_reset":         {"the target's clock", "TestTimersLive"},
	"pa_timer_start":         {"the target's clock", "TestTimersLive"},
	"pa_timer_stop":          {"the target's clock", "TestTimersLive"},
	"pa_timer_read":          {"the target's clock", "TestTimersLive"},
	"pa_timer_exact":         {"the target's clock", "TestTimersLive"},
	"pa_timer_over_counter":  {"the target's count of its system calls; getrusage of the target", "TestCallsInRegion TestLeftRegion TestWaitsInRegion TestGainsOfKilledGateway"},
	"pa_timer_over_timer":    {"the durations of the target's naps", "TestGainsOfKilledGateway"},
	"pa_meter_create":        {"perf stat", "TestMetricsOfPerf TestMeterEstimates"},
	"pa_meter_delete":        {"perf stat", "TestMetricsOfPerf TestMeterEstimates"},
	"pa_meter_read":          {"perf stat", "TestMetricsOfPerf TestMeterEstimates"},
	"pa_meter_reset":         {"perf stat", "TestMetricsOfPerf TestMeterEstimates"},
	"pa_meter_start":         {"perf stat", "TestMetricsOfPerf TestMeterEstimates"},
	"pa_meter_stop":          {"perf stat", "TestMetricsOfPerf TestMeterEstimates"},
	"pa_timer_over_counter2": {"the kernel's count of switches", "TestWaitsOfOtherThreads TestWaitsWhenAnyThreadExecutes"},
	"pa_timer_over_timer2":   {"the counts of the actions that the test makes threads do", "TestGroupOfThreads"},
	"pa_timer_over_counter3": {"the bytes and the system calls that the target's threads write", "TestThreadsOfManyKinds TestThreadsOfExecutingProcess"},
	"pa_timer_over_timer3":   {"the counts of the actions that the test makes threads do", "TestThreadsOfExecutingProcess"},
	"pa_timer_take":          {"the target's count of its system calls", "TestTakenAtInstant TestValuesAtBeginning"},
	"pa_timer_begin":         {"the target's count of its system calls", "TestFromOneFunctionToAnother"},
	"pa_timer_end":           {"the target's count of its system calls", "TestFromOneFunctionToAnother"},
	"pa_timer_take_level":    {"mallinfo2 of the target, and its number of threads", "TestLevelsAtInstants"},
	"pa_timer_sum":           {"the target's clock", "TestTimersLive"},
	"pa_trace_create":        {"the target's count and order of calls", "TestTraces TestTrace"},
	"pa_trace_delete":        {"the table of objects", "TestTrace"},
	"pa_trace_reset":         {"the script's order of events", "TestTrace"},
	"pa_trace_add":           {"the target's count and order of calls", "TestTraces TestTrace"},
	"pa_trace_add2":          {"the target's count and order of calls", "TestTraces TestTrace"},
	"pa_trace_last":          {"the sum of the timer whose interval ended", "TestRecordsOfExecutions"},
	"pa_trace_group":         {"the kernel's count of switches", "TestWaitsWhenAnyThreadExecutes"},
	"pa_trace_stack":         {"the stack pointer at entry and exit, which are equal", "TestRecordsOfExecutions"},
	"pa_trace_read":          {"the target's count and order of calls", "TestTraces TestTracesReadMeanwhile TestTrace"},
	"pa_integrator_create":   {"the numbers that the target got", "TestIntegratorLive"},
	"pa_integrator_delete":   {"the table of objects", "TestIntegratorLive"},
	"pa_integrator_reset":    {"the numbers that the target got", "TestIntegratorLive"},
	"pa_integrator_add":      {"the numbers that the target got", "TestIntegratorLive"},
	"pa_integrator_read":     {"the numbers that the target got", "TestIntegratorLive TestIntegrator"},
	"pa_interval_elapsed":    {"the clock of the test", "TestIntervalsLive"},
	"pa_filter":              {"the numbers that the target got", "TestFilterLive"},
	"pa_and_create":          {"the target's order of work", "TestCombinationsLive"},
	"pa_sequence_create":     {"the target's order of work", "TestCombinationsLive"},
	"pa_count_create":        {"the target's count", "TestCountersLive"},
	"pa_combination_signal":  {"the target's count", "TestCountersLive TestCombinationsLive"},
	"pa_combination_reset":   {"the target's order of work", "TestCombinationsLive"},
	"pa_combination_delete":  {"the table of objects", "TestCombinationsLive"},
}

// TestEveryServiceHasAnOracle checks that each service that a Linux node supports is compared with
// an independent source of truth. The table's own test checks that the other services are refused.
func TestEveryServiceHasAnOracle(t *testing.T) {
	tests := testsOfTheHouse(t)
	known := make(map[string]bool)
	for _, table := range joined(t).monitor.Engine.Catalog().Tables() {
		for _, s := range table.Services {
			known[s.Name] = true
			o, ok := oracles[s.Name]
			if has := s.Support.Level != service.Unsupported; has != ok {
				t.Errorf("%s is %s; it has an oracle: %v", s.Name, s.Support.Level, ok)
			}
			for _, name := range strings.Fields(o.tests) {
				if !slices.Contains(tests, name) {
					t.Errorf("the test of %s, %s, does not exist", s.Name, name)
				}
			}
		}
	}
	for name := range oracles {
		if !known[name] {
			t.Errorf("there is no service %s", name)
		}
	}
}

// testsOfTheHouse returns the names of all tests of the module.
func testsOfTheHouse(t *testing.T) (names []string) {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
