package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

//go:generate go test . -run TestConfigurationPage -update

const configurationPage = "../doc/configuration.md"

// settingsOf returns the settings of a command line, with a configuration file if text is not "".
func settingsOf(t *testing.T, text string, args ...string) (settings, *cobra.Command, error) {
	t.Helper()
	file := ""
	if text != "" {
		file = filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var s settings
	cmd := &cobra.Command{}
	s.define(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	got, err := s.complete(cmd, file)
	return got, cmd, err
}

// TestConfigurationPage compares the page with the flags.
func TestConfigurationPage(t *testing.T) {
	_, cmd, err := settingsOf(t, "")
	if err != nil {
		t.Fatal(err)
	}
	want := settingsReference(cmd.Flags())
	if *update {
		if err := os.WriteFile(configurationPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(configurationPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the flags say: run make generate", configurationPage)
	}
}

// TestPrecedence gives settings in some of the three places.
func TestPrecedence(t *testing.T) {
	const file = `{"node": "file", "site": "file", "hold": "ptrace", "rate": 7, "deliver": ["file:///a", "file:///b"], "hosts": ["old"], "longest-request": 4096}`
	t.Setenv("MIRADOR_NODE", "variable")
	t.Setenv("MIRADOR_SITE", "variable")
	t.Setenv("MIRADOR_DELIVER", "file:///c file:///d")
	t.Setenv("MIRADOR_LONGEST_REQUEST", "2048")
	s, cmd, err := settingsOf(t, file, "--node", "flag", "--prototypes", "x", "--prototypes", "y")
	if err != nil {
		t.Fatal(err)
	}
	if s.Node != "flag" || s.Site != "variable" || s.Hold != "ptrace" || s.Rate != 7 || s.Longest != 2048 || s.Prefer != preferSpeed ||
		!slices.Equal(s.Deliver, []string{"file:///c", "file:///d"}) || !slices.Equal(s.Hosts, []string{"old"}) || !slices.Equal(s.Prototypes, []string{"x", "y"}) {
		t.Errorf("the settings are %+v", s)
	}
	// What is printed is a configuration with the same effect.
	var printed bytes.Buffer
	if err := printSettings(&printed, cmd.Flags()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"NODE", "SITE", "DELIVER", "LONGEST_REQUEST"} {
		os.Unsetenv("MIRADOR_" + name)
	}
	again, cmd, err := settingsOf(t, printed.String())
	if err != nil {
		t.Fatal(err)
	}
	var reprinted bytes.Buffer
	if err := printSettings(&reprinted, cmd.Flags()); err != nil || reprinted.String() != printed.String() || again.Node != "flag" {
		t.Errorf("%s\nbecomes\n%s", &printed, &reprinted)
	}
}

// TestWrongConfiguration checks that an error says where it is.
func TestWrongConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\n \"nod\": \"x\"}":                `config.json, line 3: there is no setting "nod"`,
		"{\n\"config\": \"x\"}":                `line 2: there is no setting "config"`,
		"{\"node\":\n\"y\",\n\"node\": \"x\"}": `line 3: "node" is there twice`,
		"{\n\"node\": 1}":                      `line 2: "node": a string was expected`,
		"{\n\"rate\": \"many\"}":               `line 2: "many" cannot be the value of rate`,
		"{\n\"rate\": null}":                   `line 2: "rate": a string, a number or a list`,
		"{\n\"node\": [\"a\"]}":                `line 2: "node": a single value was expected`,
		"{\n\"deliver\": [1]}":                 `line 2: "deliver": a list of strings was expected`,
		"[]":                                   "line 1: a JSON object was expected",
		"{\"node\": \"x\"\n":                   "the end of the object was expected",
		"{\"node\": \"x\"}\n{}":                "the end of the object was expected",
		"{\"node\": \"x\",\n\"site\" \"y\"}":   "line 2",
		`{"rate": -1}`:                         "--rate -1",
	} {
		if _, _, err := settingsOf(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
	t.Setenv("MIRADOR_RATE", "many")
	if _, _, err := settingsOf(t, ""); err == nil || !strings.Contains(err.Error(), `MIRADOR_RATE: "many" cannot be the value of rate`) {
		t.Errorf("a wrong variable: %v", err)
	}
}

// TestPrintConfig prints the settings of a gateway that is not started.
func TestPrintConfig(t *testing.T) {
	cmd := exec.Command(miradorPath, "serve", "--print-config", "--node", "here", "--deliver", "https://host/in")
	cmd.Env = append(os.Environ(), "MIRADOR_LOG_LEVEL=debug")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Node    string
		Deliver []string
		Level   string `json:"log-level"`
		Rate    int
	}
	if err := json.Unmarshal(out, &got); err != nil || got.Node != "here" || got.Level != "debug" || !slices.Equal(got.Deliver, []string{"https://host/in"}) || got.Rate == 0 {
		t.Errorf("%s: %+v, %v", out, got, err)
	}
}

// hereDefaults describe defaults that depend on the machine and the user.
var hereDefaults = map[string]string{
	"socket": "`$XDG_RUNTIME_DIR/mirador/mirador.sock`; for root `/run/mirador/mirador.sock`",
	"data":   "`$XDG_STATE_HOME/mirador`, else `~/.local/state/mirador`; for root `/var/lib/mirador`",
	"node":   "the host name",
}

// settingsReference is the page doc/configuration.md.
func settingsReference(flags *pflag.FlagSet) string {
	var page strings.Builder
	page.WriteString(`# Configuration

Generated from the flags of ` + "`mirador serve`" + `; do not edit.

A setting has one name in all places: the flag ` + "`--log-level`" + ` is the variable ` + "`MIRADOR_LOG_LEVEL`" + ` and ` + "`\"log-level\"`" + ` in the file that ` + "`--config FILE`" + ` names.
A flag has precedence over the variable, the variable over the file, and the file over the default. The file is a JSON object of strings, numbers and lists of strings; an
unknown name is an error that says the line. In a variable the values of a list are separated by blanks; as a flag a list is repeated. ` + "`mirador serve --print-config`" + ` prints the effective
settings, which can be used as a file, and ends.

` + "```" + `
{
  "data": "/var/lib/mirador",
  "deliver": ["file:///srv/measurements"],
  "rate": 2000
}
` + "```" + `

| setting | variable | default | meaning |
| --- | --- | --- | --- |
`)
	settable(flags, func(flag *pflag.Flag) {
		standard := hereDefaults[flag.Name]
		if standard == "" && flag.DefValue != "" && flag.DefValue != "[]" {
			standard = "`" + strings.Trim(flag.DefValue, "[]") + "`"
		}
		name := "`" + flag.Name + "`"
		if isList(flag) {
			name += " (list)"
		}
		fmt.Fprintf(&page, "| %s | `%s` | %s | %s |\n", name, variable(flag.Name), standard, flag.Usage)
	})
	return page.String()
}
