"""Pages that try to get out of their browser: each reports what it gained by a request to `/gained/<what>`.

Numbers of ports are filled in: `{secret}` of a server on the host that no page may reach, `{datagram}` of a
socket that takes datagrams.
"""

from __future__ import annotations

HEAD = """<!doctype html><html lang=en><head><title>hostile</title></head><body><h1>hostile</h1><script>
const gained = (what) => fetch('/gained/' + what, {mode: 'no-cors'});
const local = 'http://127.0.0.1:{secret}/';
"""
TAIL = "</script></body></html>"

REACHING = {
    "fetch": "fetch(local + 'fetch', {mode: 'no-cors'}).then(() => gained('fetch'));",
    "image": "const one = new Image(); one.src = local + 'image';",
    "beacon": "navigator.sendBeacon(local + 'beacon', 'x');",
    "form": """document.body.insertAdjacentHTML('beforeend',
        `<form id=f method=post action="${local}form" target=g></form><iframe name=g></iframe>`);
        f.submit();""",
    "frame": """const one = document.createElement('iframe'); one.src = local + 'frame';
        document.body.append(one);""",
    "link": """const one = document.createElement('link'); one.rel = 'prefetch'; one.href = local + 'link';
        document.head.append(one);""",
    "websocket": "new WebSocket('ws://127.0.0.1:{secret}/websocket').onopen = () => gained('websocket');",
    "events": "new EventSource(local + 'events').onopen = () => gained('events');",
    "worker": """new Worker(URL.createObjectURL(new Blob([
        `fetch('${local}worker', {mode: 'no-cors'})`])));""",
    "service-worker": """navigator.serviceWorker.register('/service.js').then(() => 0, () => 0);""",
    "navigation": "setTimeout(() => { location = local + 'navigation'; }, 100);",
    "popup": "window.open(local + 'popup'); window.open('/popup');",
    "redirect": "fetch('/moved', {mode: 'no-cors'}).then(() => gained('redirect'));",
}
"""Ways to a server on the host. Without a fence each of them reaches it: the negative control."""

LEARNING = {
    "file": """fetch('file:///etc/passwd').then(() => gained('file'));
        const one = document.createElement('iframe'); one.src = 'file:///etc/passwd';
        one.onload = () => { try { if (one.contentDocument.body.innerText) gained('file-frame'); } catch {} };
        document.body.append(one);""",
    "chrome": """fetch('chrome://version').then(() => gained('chrome'));
        const one = window.open('chrome://version');
        if (one && one.document.body.innerText) gained('chrome');""",
    "broker": """fetch('http://127.0.0.1:3128/rpc', {method: 'POST', mode: 'no-cors', body: '{}'})
        .then(() => gained('broker'));
        fetch('http://127.0.0.1:3128/auth', {mode: 'no-cors'}).then(() => gained('broker'));""",
    "devtools": """for (const port of [9222, 9229])
        fetch('http://127.0.0.1:' + port + '/json', {mode: 'no-cors'}).then(() => gained('devtools'));""",
    "webrtc": """const one = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:{datagram}'}]});
        one.createDataChannel('x'); one.createOffer().then(offer => one.setLocalDescription(offer));
        one.onicecandidate = found => {
          if (found.candidate && / (srflx|relay) /.test(found.candidate.candidate)) gained('webrtc'); };""",
    "handles": """window.showOpenFilePicker && showOpenFilePicker().then(() => gained('handles'));
        navigator.usb && navigator.usb.requestDevice({filters: []}).then(() => gained('handles'));
        navigator.clipboard && navigator.clipboard.readText().then(() => gained('handles'));
        navigator.geolocation.getCurrentPosition(() => gained('handles'));
        navigator.mediaDevices && navigator.mediaDevices.getUserMedia({audio: true})
          .then(() => gained('handles'));""",
    "download": """const one = document.createElement('a'); one.href = 'data:application/octet-stream,x';
        one.download = 'left-behind.bin'; document.body.append(one); one.click();""",
}
"""Ways to learn something of the machine, or to leave something on it."""

ENDLESS = {
    "loop": "for (;;);",
    "alerts": "for (;;) alert('again');",
    "flood": "const long = 'x'.repeat(1 << 20); for (;;) console.error(long);",
    "reloads": "location.reload();",
    "hog": """const held = []; setInterval(() => { for (let at = 0; at < 400; at++) {
        const one = document.createElement('div'); one.textContent = 'x'.repeat(20000) + Math.random();
        document.body.append(one); held.push(new Uint8Array(1 << 18).fill(7)); } }, 5);""",
    "crowd": "for (let at = 0; at < 200; at++) new Worker(URL.createObjectURL(new Blob(['for(;;);'])));",
    "hanging": "document.write('<img src=/hangs><script src=/hangs?2></scr' + 'ipt>');",
}
"""Pages that do not end by themselves."""


def page(script: str, secret: int, datagram: int) -> str:
    """One hostile page with its ports filled in."""
    text = HEAD + script + TAIL
    return text.replace("{secret}", str(secret)).replace("{datagram}", str(datagram))
