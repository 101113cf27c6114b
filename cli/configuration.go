package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// A setting of "mirador serve" has one name in all places: the flag --log-level is the
// variable MIRADOR_LOG_LEVEL and "log-level" in the configuration file. A flag has precedence
// over the variable, the variable over the file, and the file over the default.

// unsettable are flags of serve that are no settings.
var unsettable = []string{"config", "print-config", "help"}

// formerNames are names in configuration files that flags did not have.
var formerNames = map[string]string{"hosts": "host", "client_authority": "client-authority"}

// settable calls f for each setting, in the order of their names.
func settable(flags *pflag.FlagSet, f func(*pflag.Flag)) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(unsettable, flag.Name) {
			f(flag)
		}
	})
}

// variable returns the environment variable of a setting.
func variable(name string) string {
	return "MIRADOR_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// isList reports whether a setting has several values.
func isList(flag *pflag.Flag) bool {
	_, is := flag.Value.(pflag.SliceValue)
	return is
}

// configure gives the settings that no flag sets their values from the environment, else from
// the configuration file.
func configure(flags *pflag.FlagSet, lookUp func(string) (string, bool), file string, text []byte) error {
	configured, err := readSettings(flags, file, text)
	if err != nil {
		return err
	}
	var errs []error
	settable(flags, func(flag *pflag.Flag) {
		text, given := lookUp(variable(flag.Name))
		switch values, inFile := configured[flag.Name]; {
		case flag.Changed:
		case given && isList(flag):
			errs = append(errs, set(flag, strings.Fields(text), variable(flag.Name)))
		case given:
			errs = append(errs, set(flag, []string{text}, variable(flag.Name)))
		case inFile:
			errs = append(errs, set(flag, values.list, values.place))
		}
	})
	return errors.Join(errs...)
}

// set gives a setting its values; place names where they are from.
func set(flag *pflag.Flag, values []string, place string) error {
	if list, is := flag.Value.(pflag.SliceValue); is {
		return list.Replace(values)
	}
	for _, v := range values {
		if err := flag.Value.Set(v); err != nil {
			return usagef("%s: %q cannot be the value of %s: %w", place, v, flag.Name, err)
		}
	}
	return nil
}

// configured are the values of a setting in a file.
type configured struct {
	list  []string
	place string
}

// readSettings reads a configuration file: a JSON object with the names of flags.
func readSettings(flags *pflag.FlagSet, file string, text []byte) (map[string]configured, error) {
	all := make(map[string]configured)
	if file == "" {
		return all, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	place := func() string {
		return fmt.Sprintf("%s, line %d", file, 1+bytes.Count(text[:decoder.InputOffset()], []byte("\n")))
	}
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return nil, usagef("cannot read the configuration %s: a JSON object was expected, such as {\"data\": \"/var/lib/mirador\"}", place())
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, usagef("cannot read the configuration %s: %w", place(), err)
		}
		at := place()
		name, _ := key.(string)
		if now, former := formerNames[name]; former {
			name = now
		}
		flag := flags.Lookup(name)
		if flag == nil || slices.Contains(unsettable, name) {
			return nil, usagef("cannot read the configuration %s: there is no setting %q; doc/configuration.md lists them, and so does \"mirador serve --help\"", at, key)
		}
		if _, again := all[name]; again {
			return nil, usagef("cannot read the configuration %s: %q is there twice", at, key)
		}
		var value any
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			return nil, usagef("cannot read the configuration %s: %w", place(), err)
		}
		list, err := settingValues(flag, value)
		if err != nil {
			return nil, usagef("cannot read the configuration %s: %q: %w", at, key, err)
		}
		all[name] = configured{list, at}
	}
	_, err := decoder.Token()
	if _, behind := decoder.Token(); err != nil || behind != io.EOF {
		return nil, usagef("cannot read the configuration %s: the end of the object was expected", place())
	}
	return all, nil
}

// settingValues returns a JSON value as a flag takes it.
func settingValues(flag *pflag.Flag, value any) (list []string, err error) {
	switch v := value.(type) {
	case string:
		return []string{v}, nil
	case json.Number:
		if flag.Value.Type() == "string" || isList(flag) {
			return nil, errors.New("a string was expected")
		}
		return []string{v.String()}, nil
	case bool:
		return []string{fmt.Sprint(v)}, nil
	case []any:
		if !isList(flag) {
			return nil, errors.New("a single value was expected")
		}
		for _, one := range v {
			text, is := one.(string)
			if !is {
				return nil, errors.New("a list of strings was expected")
			}
			list = append(list, text)
		}
		return list, nil
	}
	return nil, errors.New("a string, a number or a list of strings was expected")
}

// printSettings prints the effective settings in the form of a configuration file.
func printSettings(out io.Writer, flags *pflag.FlagSet) error {
	var lines []string
	var failed error
	settable(flags, func(flag *pflag.Flag) {
		var value any = flag.Value.String()
		switch v := flag.Value.(type) {
		case pflag.SliceValue:
			value = append([]string{}, v.GetSlice()...)
		default:
			if flag.Value.Type() == "int" {
				value = json.Number(flag.Value.String())
			}
		}
		text, err := json.Marshal(value)
		failed = errors.Join(failed, err)
		lines = append(lines, fmt.Sprintf("  %q: %s", flag.Name, text))
	})
	if failed != nil {
		return failed
	}
	_, err := fmt.Fprintf(out, "{\n%s\n}\n", strings.Join(lines, ",\n"))
	return err
}

// environment looks variables up in the environment of this process.
func environment(name string) (string, bool) { return os.LookupEnv(name) }
