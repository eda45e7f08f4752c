use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use super::{Answer, Monitor};

/// The HTTP endpoint for `/metrics`, `/health/live` and `/health/ready`.
///
/// It only reads, and holds nothing up: it ends with the runtime, whoever is still connected.
pub struct Server {
    listener: TcpListener,
}

/// The address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot listen on {host}:{port} for metrics and health: {source}. Set outboxd.http.host and outboxd.http.port (environment: OUTBOXD_HTTP_HOST, OUTBOXD_HTTP_PORT) to an address that is free, perhaps another outboxd has this one; outboxd.http.port=off runs without"
)]
pub struct ListenError {
    host: String,
    port: u16,
    source: std::io::Error,
}

impl Server {
    /// Takes the address; port 0 takes a free one. Nobody is answered yet.
    ///
    /// # Errors
    /// When the address is taken or not this machine's.
    pub async fn listen(host: &str, port: u16) -> Result<Self, ListenError> {
        match TcpListener::bind((host, port)).await {
            Ok(listener) => Ok(Self { listener }),
            Err(source) => Err(ListenError {
                host: host.to_owned(),
                port,
                source,
            }),
        }
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system's.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until dropped.
    pub async fn serve(self, monitor: Monitor) {
        let router = Router::new()
            .route("/metrics", get(metrics))
            .route("/health/live", get(live))
            .route("/health/ready", get(ready))
            .with_state(monitor);
        if let Err(error) = axum::serve(self.listener, router).await {
            tracing::error!("Metrics and health are not served any more: {error}");
        }
    }
}

async fn metrics(State(monitor): State<Monitor>) -> impl IntoResponse {
    // The text format's own content type (Prometheus documentation, "Exposition formats").
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (kind, monitor.metrics())
}

async fn live(State(monitor): State<Monitor>) -> impl IntoResponse {
    respond(&monitor.live())
}

async fn ready(State(monitor): State<Monitor>) -> impl IntoResponse {
    respond(&monitor.ready())
}

fn respond(answer: &Answer) -> impl IntoResponse + use<> {
    let status = if answer.ok {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let kind = [(header::CONTENT_TYPE, "application/json")];
    match serde_json::to_string(answer) {
        Ok(body) => (status, kind, body),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, kind, error.to_string()),
    }
}
