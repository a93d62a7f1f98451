package wire

// Names for the tests, which live outside the package.
var (
	NewConnBeating  = newConn
	ReadFrame       = readFrame
	AppendFrame     = appendFrame
	AppendPreface   = appendPreface
	ParsePreface    = parsePreface
	ParseGreeting   = parseGreeting
	ParseSSHConfig  = parseSSHConfig
	ShellQuote      = shellQuote
	SSHArgs         = SSHTarget.args
	KeyCertificate  = Key.certificate
	PrefaceBytes    = prefaceBytes
	KeyAlphabet     = keyAlphabet
	MaxHalfOpen     = maxHalfOpen
	SilentBeats     = silentBeats
	MaxInboxMessage = maxInboxMessages
)
