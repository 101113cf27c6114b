package translate

import (
	"strings"
	"testing"

	"mirador/sir"
)

// TestUnknownMetrics checks the messages for misspelt metrics: they name near ones, also in
// other name spaces, and where to find all.
func TestUnknownMetrics(t *testing.T) {
	for name, want := range map[string]string{
		"COUNTS":              "no metric COUNTS; did you mean COUNT?; GET /catalog lists",
		"NET_RECEIVE":         "no metric NET_RECEIVE; did you mean NET_RECV?; GET /catalog",
		"wc_time":             "no metric wc_time; did you mean WC_TIME or",
		"BLOCKED":             "; did you mean BLOCKED_COUNT or BLOCKED_TIME?; GET /catalog",
		"mir:SYSCALL_COUNT":   "no metric mir:SYSCALL_COUNT; did you mean linux:SYSCALL_COUNT or",
		"linux:IOWAIT_COUNTS": "no metric linux:IOWAIT_COUNTS; did you mean linux:IOWAIT_COUNT or",
		"lnux:WC_TIME":        "no metric lnux:WC_TIME; did you mean WC_TIME or",
		"SYSCAL_TIME:futex":   "; did you mean linux:SYSCALL_TIME:futex",
		"SYSCALL_TIME:%fil":   "no metric SYSCALL_TIME:%fil: a metric is of all system calls, of one name or of one class; the classes of system calls are %desc, %file",
		"SYSCALL_COUNT:*":     "; the classes of system calls are %desc, %file",
		"mir:TOT_INS":         "; did you mean papi:PAPI_TOT_INS",
		"instructions":        "; did you mean papi:PAPI_TOT_INS",
		"cpu-migration":       "; did you mean linux:CPU_MIGRATIONS?",
		"PAPI_FP_OPS":         "no metric PAPI_FP_OPS; GET /catalog",
		"XYZZY":               "no metric XYZZY; GET /catalog lists the metrics",
	} {
		if got := unknown(name); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", name, got, want)
		}
	}
}

// TestNameSpaces checks that a name space selects the metrics of its provider.
func TestNameSpaces(t *testing.T) {
	for name, want := range map[string]string{
		"WC_TIME": MIR, "mir:WC_TIME": MIR, "linux:WC_TIME": "",
		"SYSCALL_TIME:futex": Linux, "linux:SYSCALL_TIME:futex": Linux, "mir:SYSCALL_TIME:futex": "",
		"mpi:WC_TIME": "", "": "", "mir:": "",
	} {
		if m, _ := metric(name, true); m.Space != want {
			t.Errorf("%s is in %q, want %q", name, m.Space, want)
		}
	}
}

// TestCatalogIsComplete checks that no row lacks a field that every metric has, and that the catalog
// has the metrics of Table 1 of MIR's report.
func TestCatalogIsComplete(t *testing.T) {
	known := make(map[string]bool)
	for _, m := range Catalog() {
		known[m.Space+":"+m.Name] = true
		if m.Space == "" || m.Unit == "" || m.Kind == "" || len(m.Entities) == 0 || m.Doc == "" || m.Measured == "" || (m.Cost == "") != (m.Unavailable != "") {
			t.Errorf("%+v", m)
		}
	}
	for _, name := range tableOne {
		if !known["mir:"+name] {
			t.Errorf("the catalog has no %s", name)
		}
	}
}

// tableOne lists Table 1 of MIR's report.
var tableOne = strings.Fields(`WC_TIME CPU_TIME LOADED_CL_TOTAL LOADED_CL_CURR UNLOADED_CL COMP_TIME GC_COUNT GC_TIME
	THREAD_WAITED_COUNT THREAD_WAITED_TIME HEAP_MEM_USAGE NON_HEAP_MEM_USAGE NON_FINALIZED_OBJECTS THREAD_COUNT DAEMON_THREAD_COUNT BLOCKED_COUNT BLOCKED_TIME
	NET_SEND NET_BYTES_SEND NET_BLOCKED_SEND NET_RECV NET_BYTES_RECV NET_BLOCKED_RECV NET_INIT NET_END`)

// TestUnknownUnits checks what the message for an unknown unit suggests.
func TestUnknownUnits(t *testing.T) {
	program := &sir.Program{Regions: []sir.Region{
		{ID: "shop:buy_item", Name: "buy_item"}, {ID: "shop:main.render", Name: "main.render"}, {ID: "shop:_Z4sellv", Name: "sell()"}, {ID: "bare:func_10", Name: "func_10"}, {ID: "bare:_start", Name: "_start"}, {ID: "bare:func_20", Name: "func_20"},
	}}
	targets := &Targets{Processes: []Process{{Token: "p_1", Modules: []Module{{Units: sir.NewIndex(program)}}}}}
	if got := interpreted([]regionCopy{{Region: &sir.Region{ID: "java:main"}}, {Region: &sir.Region{ID: "libjvm.so:JVM_Sleep"}}}); !strings.Contains(got, "woven") {
		t.Errorf("of Java: %q", got)
	}
	for name, want := range map[string]string{
		"shop:by_item": "; did you mean shop:buy_item?", "shop:buy": "; did you mean shop:buy_item?", "sel()": "; did you mean shop:_Z4sellv (sell())?", "program:buy_item": "; did you mean shop:buy_item?",
		"render":               "; did you mean shop:main.render?",
		"shop:nothing_like_it": "; a sirreq lists the units and their ids", "bare:nothing_like_it": ": bare has no symbols, so that 2 of its functions are called func_",
	} {
		if got := didYouMean(name, targets); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	stripped := &Targets{Processes: []Process{{Token: "p_1", Modules: []Module{{Units: sir.NewIndex(&sir.Program{Regions: program.Regions[3:]})}}}}}
	if got := didYouMean("_strat", stripped); !strings.HasPrefix(got, ": bare has no symbols") || !strings.HasSuffix(got, "; did you mean bare:_start?") {
		t.Errorf("without a program's name: %s", got)
	}
}
