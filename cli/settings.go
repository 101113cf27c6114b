package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	gateway "mirador/http"
	"mirador/mir"
	"mirador/mir/client"
	"mirador/omis/node"
	"mirador/probes/deliver"
	"mirador/sir/fetch"
	"mirador/sir/source/apart"
)

// settings contains what the flags and the configuration file tell serve.
type settings struct {
	Listen    string // or "off" for no TCP
	Socket    string
	Data      string
	Node      string
	Site      string
	Hold      string
	Calibrate string
	LogLevel  string
	Resources []string
	Longest   int // in bytes
	// Placements lists where the actions of conditional requests may run: "trap" and cheaper placements.
	Placements string
	// Prefer decides about functions where a jump can only be at the first instruction: speed
	// places the jump, sharing leaves the instruction to other tools' probes.
	Prefer string

	// Lease limits how long objects stay stopped by a tool that is not active; "0" means forever.
	Lease string

	// Deliver lists the destinations of measurements that requests may name.
	Deliver []string

	// Prototypes lists files and folders that describe functions of libraries.
	Prototypes []string
	// Hosts lists names, besides localhost, by which clients reach the gateway over TCP.
	Hosts []string

	Certificate     string
	Key             string
	ClientAuthority string

	// Rate limits the requests of a caller in a second; 0: it does not.
	Rate int

	// Fetch and Parser limit what a sirreq may take; zero values are the defaults.
	Fetch  fetch.Limits
	Parser apart.Limits

	level slog.Level
	lease time.Duration
}

// These are the values of Calibrate.
const (
	calibrateAtStart    = "at-start"
	calibrateWhenNeeded = "when-needed"
)

// These are the values of Hold.
const (
	holdByRendezvous = node.HeldByRendezvous
	holdByPtrace     = node.HeldByPtrace
)

// These are the values of Prefer.
const (
	preferSpeed   = "speed"
	preferSharing = "sharing"
)

func (s *settings) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.Listen, "listen", "127.0.0.1:6470", `the TCP address, "off" for none`)
	flags.StringVar(&s.Socket, "socket", client.DefaultSocket(), "the Unix socket")
	flags.StringVar(&s.Data, "data", client.DefaultData(), "the directory for the token, checkpoints of processes, what probes cost, and what a gateway that is killed leaves to the next one")
	flags.StringVar(&s.Node, "node", hostname(), "the node's name")
	flags.StringVar(&s.Site, "site", "", "the name of the site that contains the node, as snapshots and measurements show it; without it they show no site")
	flags.StringVar(&s.Placements, "placements", placements, "where the actions of conditional requests may run; trap alone spares the kernel, and changes the least of programs")
	flags.StringVar(&s.Hold, "hold", holdByRendezvous, "how threads are held: rendezvous (where possible) or ptrace")
	flags.StringVar(&s.Calibrate, "calibrate", calibrateAtStart, "when to measure what probes cost on this machine: at-start (in the background, once a data directory) or when-needed")
	flags.StringVar(&s.Prefer, "prefer", preferSpeed, "where a jump can be only at the first instruction of a function: speed (the jump is placed there, and the placement says that no other tool may set a uprobe there) or sharing (a more expensive placement is taken)")
	flags.StringVar(&s.Lease, "lease", "1m", "how long threads that an OMIS tool has stopped or suspended stay so while it sends no request and reads no replies; 0: until it comes back")
	flags.StringVar(&s.LogLevel, "log-level", "info", "debug, info, warn or error")
	flags.IntVar(&s.Longest, "longest-request", mir.RequestLimits().Bytes, "how many bytes a request may have; one that names ten thousand probes has a quarter of a million")
	flags.IntVar(&s.Rate, "rate", gateway.DefaultRate, "how many requests a caller may send in a second, further ones are answered with 429; root and the gateway's user have no limit on the socket; 0: nobody has one")
	flags.StringArrayVar(&s.Resources, "resources", nil, "a folder, or a URL (http, https, ftp) and what is below it, whose files a sirreq may name; may be repeated")
	s.Fetch, s.Parser = fetch.DefaultLimits(), apart.DefaultLimits()
	flags.Int64Var(&s.Fetch.Bytes, "fetch-bytes", s.Fetch.Bytes, "how many bytes the files may have that a sirreq names on servers")
	flags.DurationVar(&s.Fetch.Time, "fetch-time", s.Fetch.Time, "how long servers may take to send the files of a sirreq")
	flags.Int64Var(&s.Parser.Memory, "parser-bytes", s.Parser.Memory, "how much memory the process that reads the sources of a sirreq may use, in bytes")
	flags.DurationVar(&s.Parser.CPU, "parser-time", s.Parser.CPU, "how much CPU time, in whole seconds, the process that reads the sources of a sirreq may use")
	flags.StringVar(&s.Certificate, "certificate", "", "a PEM file with the certificate for TLS")
	flags.StringVar(&s.Key, "key", "", "a PEM file with the key of the certificate")
	flags.StringVar(&s.ClientAuthority, "client-authority", "", "a PEM file with the authority that signs client certificates")
	flags.StringArrayVar(&s.Hosts, "host", nil, "a name by which the gateway is reached over TCP without TLS, besides localhost and addresses; may be repeated")
	flags.StringArrayVar(&s.Deliver, "deliver", []string{deliver.AnyFile}, "where measurements may be delivered to: a file, a folder, a Unix socket or a URL, and what is below it, such as file:///srv/data, unix:///run/values or https://host/in; may be repeated")
	flags.StringArrayVar(&s.Prototypes, "prototypes", nil, "a file, or a folder of files, with prototypes of library functions; may be repeated")
}

// These are the limits of --longest-request.
const (
	leastLongest = 1 << 10
	mostLongest  = 16 << 20
)

// checkResources refuses what cannot be a folder or the URL of a server.
func checkResources(resources []string) error {
	for _, r := range resources {
		if filepath.IsAbs(r) {
			continue
		}
		if u, err := url.Parse(r); err != nil || !fetch.CanGet(u.Scheme) || u.Host == "" {
			return usagef("--resources %s: it is neither a folder /PATH nor a URL such as https://HOST/PATH or ftp://HOST/", r)
		}
	}
	return nil
}

// leastParserBytes lets the process that reads sources start.
const leastParserBytes = 256 << 20

// checkLimits refuses limits with which no sirreq can be answered.
func (s *settings) checkLimits() error {
	switch {
	case s.Fetch.Bytes <= 0 || s.Fetch.Time <= 0:
		return usagef("--fetch-bytes %d, --fetch-time %s: both must be greater than 0", s.Fetch.Bytes, s.Fetch.Time)
	case s.Parser.Memory < leastParserBytes || s.Parser.CPU < time.Second:
		return usagef("--parser-bytes %d, --parser-time %s: a parser needs at least %d bytes and 1s", s.Parser.Memory, s.Parser.CPU, leastParserBytes)
	}
	return nil
}

// checkSite refuses names that documents cannot show as ids.
func checkSite(name string) error {
	if name == "*" || name == "?" {
		return usagef("--site %s: * and ? are symbols in requests; choose another name", name)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return usagef("--site %q: the name may contain only printable characters", name)
	}
	return nil
}

// placements names all placements, cheapest first.
const placements = "inline,kernel,trap"

func (s *settings) mayPlace(name string) bool {
	return slices.Contains(strings.Split(s.Placements, ","), name)
}

// checkPlacements makes sure that every request can run in one of the placements.
func (s *settings) checkPlacements() error {
	for _, name := range strings.Split(s.Placements, ",") {
		if !slices.Contains(strings.Split(placements, ","), name) {
			return usagef("%q is no placement: there are %s", name, placements)
		}
	}
	if !s.mayPlace("trap") {
		return usagef("the placements %q lack trap, the only one where every request can run", s.Placements)
	}
	return nil
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// complete merges the settings of the flags with those of the environment and of the
// configuration file, see configure.
func (s *settings) complete(cmd *cobra.Command, file string) (settings, error) {
	var text []byte
	var err error
	if file != "" {
		if text, err = readConfiguration(file); err != nil {
			return *s, err
		}
	}
	if err := configure(cmd.Flags(), environment, file, text); err != nil {
		return *s, err
	}
	merged := *s
	if err := merged.level.UnmarshalText([]byte(merged.LogLevel)); err != nil {
		return merged, usagef("%q is no log level: debug, info, warn or error", merged.LogLevel)
	}
	if merged.Hold != holdByRendezvous && merged.Hold != holdByPtrace {
		return merged, usagef("%q is no way to hold threads: rendezvous or ptrace", merged.Hold)
	}
	if merged.Calibrate != calibrateAtStart && merged.Calibrate != calibrateWhenNeeded {
		return merged, usagef("--calibrate %q: choose %s or %s", merged.Calibrate, calibrateAtStart, calibrateWhenNeeded)
	}
	if merged.Prefer != preferSpeed && merged.Prefer != preferSharing {
		return merged, usagef("%q is nothing to prefer: speed or sharing", merged.Prefer)
	}
	if merged.lease, err = time.ParseDuration(merged.Lease); err != nil || merged.lease < 0 {
		return merged, usagef("--lease %q is no duration, such as 90s or 5m; 0 means no lease", merged.Lease)
	}
	if err := deliver.Rules(merged.Deliver).Check(); err != nil {
		return merged, usagef("--deliver: %w", err)
	}
	if err := checkResources(merged.Resources); err != nil {
		return merged, err
	}
	if err := merged.checkLimits(); err != nil {
		return merged, err
	}
	if err := checkSite(merged.Site); err != nil {
		return merged, err
	}
	if merged.Longest < leastLongest || merged.Longest > mostLongest {
		return merged, usagef("--longest-request %d: requests may be restricted to %d to %d bytes", merged.Longest, leastLongest, mostLongest)
	}
	if merged.Rate < 0 {
		return merged, usagef("--rate %d: it is a number of requests in a second, or 0", merged.Rate)
	}
	return merged, merged.checkPlacements()
}

// pipePatience limits how long a configuration that is a pipe may be empty.
const pipePatience = 2 * time.Second

// readConfiguration reads a file, or a pipe with a writer, such as the shell's <(COMMAND).
func readConfiguration(file string) ([]byte, error) {
	// Without O_NONBLOCK, the opening of a pipe waits for a writer.
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	deadline := time.Now().Add(pipePatience)
	isPipe := info.Mode()&os.ModeNamedPipe != 0
	if isPipe {
		if err := f.SetReadDeadline(deadline); err != nil {
			return nil, fmt.Errorf("cannot read the configuration: %w", err)
		}
	}
	for {
		text, err := io.ReadAll(f)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), isPipe && len(text) == 0 && time.Now().After(deadline):
			return nil, usagef("cannot read the configuration %s: it is a pipe without a writer", file)
		case err != nil:
			return nil, fmt.Errorf("cannot read the configuration: %w", err)
		case !isPipe || len(text) > 0:
			return text, nil
		}
		const pause = 10 * time.Millisecond
		time.Sleep(pause) // wait for a writer
	}
}

// open listens at the addresses in the settings.
func (s *settings) open() ([]net.Listener, error) {
	secure, err := s.secure()
	if err != nil {
		return nil, err
	}
	if activated, err := gateway.Activated(secure); err != nil || len(activated) > 0 {
		return activated, err
	}
	local, err := gateway.ListenUnix(s.Socket)
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	if s.Listen == "off" {
		return []net.Listener{local}, nil
	}
	remote, err := gateway.ListenTCP(s.Listen, secure)
	if err != nil {
		local.Close()
		return nil, fmt.Errorf("cannot listen: %w (choose another address with --listen, or --listen off)", err)
	}
	return []net.Listener{local, remote}, nil
}

// costs returns the file that stores what probes cost, or "" if there is none.
func (s *settings) costs() string {
	if s.Data == "" {
		return ""
	}
	return filepath.Join(s.Data, "costs.json")
}

// fetched returns the folder for files from servers; "" means that of temporary files.
func (s *settings) fetched() string {
	if s.Data == "" {
		return ""
	}
	return filepath.Join(s.Data, "fetched")
}

// checkpoints returns the directory for saved processes; "" means the node's default.
func (s *settings) checkpoints() string {
	if s.Data == "" {
		return ""
	}
	return filepath.Join(s.Data, "checkpoints")
}

func (s *settings) scheme() string {
	if s.Certificate != "" {
		return "https"
	}
	return "http"
}

// secure returns the TLS configuration, nil without a certificate.
func (s *settings) secure() (*tls.Config, error) {
	if s.Certificate == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	if s.ClientAuthority == "" {
		return config, nil
	}
	pem, err := os.ReadFile(s.ClientAuthority)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authority of client certificates: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("there is no certificate in %s", s.ClientAuthority)
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven
	return config, nil
}
