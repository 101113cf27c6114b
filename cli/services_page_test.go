package cli

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/service"
	"mirador/probes/journal"
)

//go:generate go test . -run TestServicesPage -update

var update = flag.Bool("update", false, "write the generated page of services")

const servicesPage = "../doc/omis-services.md"

// joined returns a backend with the real node.
func joined(t *testing.T) *backend {
	t.Helper()
	j, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m, err := join(settings{Node: "here", Placements: placements}, slog.New(slog.NewTextHandler(io.Discard, nil)), j)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(context.Background()), j.Close()); err != nil {
			t.Error(err)
		}
	})
	return m
}

func TestServicesPage(t *testing.T) {
	want := joined(t).monitor.Engine.Catalog().Reference()
	if *update {
		if err := os.WriteFile(servicesPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(servicesPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the table says: run make generate", servicesPage)
	}
}

// TestServicesSayHowOrWhy checks that each row says how Linux implements the service or why it does
// not, and that services("") lists what this machine supports.
func TestServicesSayHowOrWhy(t *testing.T) {
	m := joined(t)
	for _, table := range m.monitor.Engine.Catalog().Tables() {
		for _, s := range table.Services {
			lacks := s.Support.Level == service.Unsupported
			if lacks == (s.Linux != "") || (s.Support.Level != service.Full) != (s.Support.Reason != "") {
				t.Errorf("%s is %s; reason %q, implementation %q", s.Name, s.Support.Level, s.Support.Reason, s.Linux)
			}
		}
	}
	for _, table := range m.monitor.Engine.Available().Tables() {
		var full, partial []string
		for _, s := range table.Services {
			switch s.Support.Level {
			case service.Full:
				full = append(full, s.Name)
			case service.Partial:
				partial = append(partial, s.Name)
			}
			checkAnswer(t, m, &s)
		}
		reply, err := m.OMIS(t.Context(), "asks", `: services("`+table.Prefix+`")`, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := reply[1][0].Values
		if !slices.Equal(stringsOf(got[1]), full) || !slices.Equal(stringsOf(got[3]), partial) {
			t.Errorf("services(%q) answers %v, the table has %v and %v", table.Prefix, got, full, partial)
		}
	}
}

// checkAnswer calls a service without parameters. A service that the node lacks must refuse with
// the reason; any other must have an implementation.
func checkAnswer(t *testing.T, m *backend, s *service.Service) {
	t.Helper()
	request := ": " + s.Name + "()"
	if s.Kind == service.Event {
		request = s.Name + "() : print([])"
	}
	reply, err := m.OMIS(t.Context(), "asks", request, 0)
	if err != nil {
		t.Fatal(err)
	}
	lacks := s.Support.Level == service.Unsupported
	unsupported := false
	for _, result := range slices.Concat(reply...) {
		if result.Status == omis.UnsupportedService {
			unsupported = strings.Contains(result.Msg, s.Support.Reason)
		}
	}
	if unsupported != lacks {
		t.Errorf("%s is %s and answers %v", s.Name, s.Support.Level, reply)
	}
}

func stringsOf(v omis.Value) (list []string) {
	for _, s := range v.List {
		list = append(list, s.Str)
	}
	return list
}
