package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// Config is the whole configuration. It is complete and checked when Load returns
// it, and nobody changes it afterwards. What each field means is written at its
// key in keys.go and in the example file.
type Config struct {
	Rules []string `mapstructure:"rules"` // "name=value" each, not checked here

	BetsFile      string `mapstructure:"bets_file"`
	InsuranceFile string `mapstructure:"insurance_file"`

	Table   Table   `mapstructure:"table"`
	Reader  Reader  `mapstructure:"reader"`
	Boxes   Boxes   `mapstructure:"boxes"`
	Panel   Panel   `mapstructure:"panel"`
	Lamps   Lamps   `mapstructure:"lamps"`
	Journal Journal `mapstructure:"journal"`
	MQTT    MQTT    `mapstructure:"mqtt"`
	Access  Access  `mapstructure:"access"`
	Control Control `mapstructure:"control"`
	Metrics Metrics `mapstructure:"metrics"`
	Log     Log     `mapstructure:"log"`

	Spares []Reader `mapstructure:"-"` // readers that are not in use at first

	places map[string]Place // where each value that is not a default was given
}

// Table names the table.
type Table struct {
	Site  string `mapstructure:"site"`
	ID    string `mapstructure:"id"`
	Label string `mapstructure:"label"`
}

// Reader is the card reader and its line.
type Reader struct {
	Name        string `mapstructure:"name"`
	Protocol    string `mapstructure:"protocol"`
	Device      string `mapstructure:"device"`
	BaudRate    int    `mapstructure:"baud_rate"`
	DataBits    int    `mapstructure:"data_bits"`
	Parity      string `mapstructure:"parity"`
	StopBits    int    `mapstructure:"stop_bits"`
	BufferBytes int    `mapstructure:"buffer_bytes"`

	// On a GPIO chip.
	Lines    []string `mapstructure:"lines"`
	Active   string   `mapstructure:"active"`
	Bias     string   `mapstructure:"bias"`
	WordBits int      `mapstructure:"word_bits"`
	SettleUS int      `mapstructure:"settle_us"`
	HoldMS   int      `mapstructure:"hold_ms"`

	Codes     []string `mapstructure:"codes"` // "code=card" each, not checked here
	CodesFile string   `mapstructure:"codes_file"`

	// Of a generic one.
	Framing        string `mapstructure:"framing"`
	FrameStart     string `mapstructure:"frame_start"`
	FrameEnd       string `mapstructure:"frame_end"`
	LengthCounts   string `mapstructure:"length_counts"`
	PayloadBytes   int    `mapstructure:"payload_bytes"`
	Checksum       string `mapstructure:"checksum"`
	ChecksumForm   string `mapstructure:"checksum_form"`
	ChecksumOrder  string `mapstructure:"checksum_order"`
	ChecksumPlace  string `mapstructure:"checksum_place"`
	ChecksumCovers string `mapstructure:"checksum_covers"`
	CodeForm       string `mapstructure:"code_form"`
	CodeOffset     int    `mapstructure:"code_offset"`
	CodeBytes      int    `mapstructure:"code_bytes"`
}

// Boxes are the sensors that see where the cards lie. Without a Device there are
// none; so with Panel and Lamps.
type Boxes struct {
	Protocol  string   `mapstructure:"protocol"`
	Device    string   `mapstructure:"device"`
	Lines     []string `mapstructure:"lines"` // "use=wire" each; so in Panel and Lamps
	SteadyMS  int      `mapstructure:"steady_ms"`
	Active    string   `mapstructure:"active"`
	Bias      string   `mapstructure:"bias"`
	Codes     []string `mapstructure:"codes"`
	CodesFile string   `mapstructure:"codes_file"`
	BaudRate  int      `mapstructure:"baud_rate"`
	DataBits  int      `mapstructure:"data_bits"`
	Parity    string   `mapstructure:"parity"`
	StopBits  int      `mapstructure:"stop_bits"`
}

// Panel is the dealer's buttons, and what else has a switch.
type Panel struct {
	Device   string   `mapstructure:"device"`
	Lines    []string `mapstructure:"lines"`
	SteadyMS int      `mapstructure:"steady_ms"`
	Active   string   `mapstructure:"active"`
	Bias     string   `mapstructure:"bias"`
}

// Lamps follow the table.
type Lamps struct {
	Device   string   `mapstructure:"device"`
	Lines    []string `mapstructure:"lines"`
	Active   string   `mapstructure:"active"`
	BuzzerMS int      `mapstructure:"buzzer_ms"`
}

// Journal is the log on disk.
type Journal struct {
	Dir        string `mapstructure:"dir"`
	MaxAgeDays int    `mapstructure:"max_age_days"`
	MaxBytes   int64  `mapstructure:"max_bytes"`
}

// MQTT is the way out: a broker elsewhere, or the embedded one if Servers is
// empty.
type MQTT struct {
	Servers        []string `mapstructure:"servers"`
	User           string   `mapstructure:"user"`
	Password       Secret   `mapstructure:"-"` // of password or of the file
	PasswordFile   string   `mapstructure:"password_file"`
	CAFile         string   `mapstructure:"ca_file"`
	CertFile       string   `mapstructure:"cert_file"`
	KeyFile        string   `mapstructure:"key_file"`
	ServerName     string   `mapstructure:"server_name"`
	ClientID       string   `mapstructure:"client_id"`
	KeepAliveS     int      `mapstructure:"keep_alive_s"`
	WriteTimeoutMS int      `mapstructure:"write_timeout_ms"`
	Window         int      `mapstructure:"window"`
	Listen         string   `mapstructure:"listen"`
	ListenWS       string   `mapstructure:"listen_ws"`
	ListenCertFile string   `mapstructure:"listen_cert_file"`
	ListenKeyFile  string   `mapstructure:"listen_key_file"`
	Audit          bool     `mapstructure:"audit"`
}

// Access is who uses the table over MQTT.
type Access struct {
	Users        []string `mapstructure:"users"` // "name=role" each
	PasswordFile string   `mapstructure:"password_file"`

	Keys             []string `mapstructure:"keys"` // "name=key" each
	RequireSignature bool     `mapstructure:"require_signature"`
	Dual             []string `mapstructure:"dual"` // names of commands
}

// Metrics are numbers for Prometheus.
type Metrics struct {
	Listen string `mapstructure:"listen"`
}

// Off is the value of a Listen that opens no listener.
const Off = "off"

// Control is the local command socket.
type Control struct {
	Socket string `mapstructure:"socket"`
}

// Log is the program's own log.
type Log struct {
	Level  string `mapstructure:"level"`
	Format string `mapstructure:"format"`
}

// maxFileBytes bounds the file: ten times the example with its comments.
const maxFileBytes = 64 << 10

// Load reads the file at path (none if path is empty), overrides it by the
// SHOED_ variables of env (as from os.Environ) and fills in the defaults. If
// anything is wrong it returns an *Error with all that is, or the error of
// reading the file.
//
// Names, types and values are all checked in one go, except a value whose type is
// wrong, and except what takes two values together: that wants the rest right.
func Load(path string, env []string) (*Config, error) {
	file, err := read(path)
	if err != nil {
		return nil, err
	}
	inFile := strict(path, file)
	inEnv := environment(env)
	c := &Config{places: inFile.places}
	maps.Copy(c.places, inEnv.places)
	problems := append(inFile.problems, inEnv.problems...)
	first, others := split(file)
	v, err := layer(first, inEnv.values)
	if len(problems) > 0 {
		if err == nil {
			problems = append(problems, checkEach(c, v, problems)...)
		}
		return nil, newError(problems)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	err = v.Unmarshal(c, func(d *mapstructure.DecoderConfig) { d.WeaklyTypedInput = false })
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	c.MQTT.Password = newSecret(v.GetString("mqtt.password"))
	problems = append(checkEach(c, v, nil), c.setSpares(others)...)
	if problems = append(problems, checkTogether(c, env)...); len(problems) > 0 {
		return nil, newError(problems)
	}
	return c, nil
}

// Hash is the SHA-256, in hexadecimal digits, of every value in force but
// secrets: two tables with the same hash are configured alike.
func (c *Config) Hash() string {
	plain := *c
	plain.places = nil
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v", plain)) // a Secret does not print
	return hex.EncodeToString(sum[:])
}

// Where tells where the value of a key was given, for errors found by others:
// "reader.protocol", or "rules[2]" for the third rule.
func (c *Config) Where(key string) Place {
	return c.places[key]
}

func read(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("configuration %s: larger than %d bytes; give the right file", path, maxFileBytes)
	}
	const byteOrderMark = "\ufeff" // some editors put one first
	return bytes.TrimPrefix(text, []byte(byteOrderMark)), nil
}

// layer lays defaults, file and environment over each other.
func layer(file map[string]any, env map[string]any) (*viper.Viper, error) {
	v := viper.New()
	for k := range keys() {
		v.SetDefault(k.path, k.value)
	}
	if err := v.MergeConfigMap(file); err != nil {
		return nil, err
	}
	for path, value := range env {
		v.Set(path, value)
	}
	return v, nil
}
