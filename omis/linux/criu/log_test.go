package criu

import "testing"

func TestReason(t *testing.T) {
	for log, want := range map[string]string{
		"": "",
		"(00.012) Warn  (criu/kerndat.c:1637): CRIU was built without libnftables support\n": "",
		`Error (criu/util.c:1533): rlimit: Can't setup RLIMIT_NOFILE for self: Operation not permitted
 23088: Error (criu/files-reg.c:2175): File tmp/out has bad size 327 (expect 236)
 23088: Error (criu/files.c:1221): Unable to open fd=3 id=0x6
Error (criu/cr-restore.c:2320): Restoring FAILED.
`: "File tmp/out has bad size 327 (expect 236)",
		"(00.000013) Error (criu/sk-unix.c:812): unix: External socket is used\n":       "unix: External socket is used",
		"(00.000013)  7: Error (criu/cr-restore.c:1230): Can't fork for 7: File exists": "Can't fork for 7: File exists",
	} {
		if got := reason(log); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
