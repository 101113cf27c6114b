package library

import "testing"

func TestNames(t *testing.T) {
	for text, want := range map[string]name{
		"pvm_send":                 {"", "pvm_send", ""},
		"memcpy@GLIBC_2.14":        {"", "memcpy", "GLIBC_2.14"},
		"memcpy@@GLIBC_2.14":       {"", "memcpy", "GLIBC_2.14"},
		"libm.so.6:sin":            {"libm.so.6", "sin", ""},
		"libm.so.6:sin@V":          {"libm.so.6", "sin", "V"},
		"std::terminate":           {"", "std::terminate", ""},
		"a.so:std::terminate":      {"a.so", "std::terminate", ""},
		"a.so:std::chrono::now@@V": {"a.so", "std::chrono::now", "V"},
	} {
		if got := parseName(text); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
