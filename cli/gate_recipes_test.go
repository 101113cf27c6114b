package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"mirador/examples/targets"
)

// recipe is a git repository with the files of a recipe, whose working tree a test changes.
type recipe struct{ dir string }

func newRecipe(t *testing.T, files string) *recipe {
	t.Helper()
	r := &recipe{targets.SharedDir(t)}
	if err := os.CopyFS(r.dir, os.DirFS(files)); err != nil {
		t.Fatal(err)
	}
	const commit = "git init -q -b main . && git add . && git -c user.name=t -c user.email=t@t commit -qm 'first' && git update-ref refs/remotes/origin/main HEAD"
	if out, status := r.run(t, commit); status != 0 {
		t.Fatalf("%s", out)
	}
	return r
}

// run runs a script as continuous integration does, with this mirador in the PATH.
func (r *recipe) run(t *testing.T, script string, env ...string) (out string, status int) {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(miradorPath)+":"+os.Getenv("PATH"), "MIRADOR_GATEWAY=", "GOFLAGS=",
		"XDG_CACHE_HOME="+filepath.Join(r.dir, ".cache"), "GOCACHE="+goCache(t), "GIT_CONFIG_GLOBAL=/dev/null")
	cmd.Env = append(cmd.Env, env...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

func goCache(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// change replaces a text in a file.
func (r *recipe) change(t *testing.T, file, from, to string) {
	t.Helper()
	path := filepath.Join(r.dir, file)
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), from) {
		t.Fatalf("%s: %v", file, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// read decodes a file of the recipe.
func (r *recipe) read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, file))
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const recipes = "../examples/gates"

// TestGateRecipes runs the scripts of examples/gates: without a change, and with one that fails.
func TestGateRecipes(t *testing.T) {
	t.Parallel()
	targets.NoneLeft(t)
	r := newRecipe(t, recipes)
	want := func(name, out string, status, wanted int, text string) {
		t.Helper()
		if status != wanted || !strings.Contains(out, text) {
			t.Errorf("%s: status %d, want %d and %q\n%s", name, status, wanted, text, out)
		}
	}
	out, status := r.run(t, "make gate")
	want("make", out, status, 0, "The gate passed")
	r.change(t, "shop.c", "sum += price(i);", "if (price(i + 1)) sum += price(i);")
	out, status = r.run(t, "make gate")
	want("make after the change", out, status, 2, "is more than 20200")
	r.run(t, "rm -rf .base; git worktree prune")

	var github struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	r.read(t, "github.yml", &github)
	for _, step := range github.Jobs["gate"].Steps {
		if step.Run != "" {
			out, status = r.run(t, step.Run, "GITHUB_ACTIONS=true", "GITHUB_BASE_REF=main", "GITHUB_STEP_SUMMARY="+filepath.Join(r.dir, "summary.md"))
		}
	}
	want("GitHub", out, status, exitGateFailed, "::error file=shop.c,line=")
	if text, err := os.ReadFile(filepath.Join(r.dir, "summary.md")); err != nil || !strings.Contains(string(text), "| FAILED |") {
		t.Errorf("%v\n%s", err, text)
	}
	r.run(t, "rm -rf .base; git worktree prune")

	var gitlab struct {
		Gate struct {
			Script    []string
			Artifacts struct{ Reports struct{ JUnit string } }
		}
	}
	r.read(t, "gitlab.yml", &gitlab)
	out, status = r.run(t, strings.Join(gitlab.Gate.Script, "\n"), "CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main")
	want("GitLab", out, status, exitGateFailed, "is more than 20200")
	if text, err := os.ReadFile(filepath.Join(r.dir, gitlab.Gate.Artifacts.Reports.JUnit)); err != nil || !strings.Contains(string(text), "<failure") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestGateGoRecipe runs the test of a package that judges its own benchmarks.
func TestGateGoRecipe(t *testing.T) {
	t.Parallel()
	r := newRecipe(t, filepath.Join(recipes, "go"))
	if out, status := r.run(t, "go mod init shop && go test -tags gate ."); status != 0 {
		t.Errorf("status %d\n%s", status, out)
	}
	r.change(t, "shop.go", `[]byte("item-" + strconv.Itoa(item))`, `[]byte("item-" + strconv.Itoa(item) + "-of-a-text-that-is-longer-than-a-buffer-on-the-stack")`)
	if out, status := r.run(t, "go test -tags gate ."); status == 0 || !strings.Contains(out, "is more than 1") {
		t.Errorf("status %d\n%s", status, out)
	}
}
